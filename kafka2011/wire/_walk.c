/* Walk a message set in compiled code: `pure.py`, function by function, with the same names and the same results.
 *
 * Read pure.py first. It says what each function does; here are only the reasons for doing it another way:
 *
 *   - The lock of the interpreter is let go while a large set is checked. The bytes may then change under us (a
 *     bytearray in another thread), so every length is read once, into a local variable, and judged there.
 *   - No position that comes from Python is trusted: each is compared with the size of the buffer where it is used.
 *   - CRC-32 is folded with carry-less multiplications (Gopal et al., "Fast CRC Computation for Generic Polynomials
 *     Using PCLMULQDQ", Intel 2009) where the processor has them, else taken eight bytes at a time from tables.
 *     Tables and constants are computed from the polynomial when the module is loaded: CRC-32C is one more struct Crc.
 *
 * Only the stable ABI of Python 3.11 is used: one build serves every later version.
 */

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FOLDING 1
#include <immintrin.h>
#endif

typedef unsigned char Byte;

/* Raised together with pure.VERSION whenever a name, an argument or a result changes: a build that was left over from
 * before is then not used. */
enum { VERSION = 1 };

enum { HEAD_0 = 9, HEAD_1 = 10, CODEC_MASK = 3 };
/* A set smaller than this is checked in less time than letting the lock go and taking it again costs. */
enum { WORTH_LETTING_GO = 32 << 10 };

static uint32_t u32(const Byte *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_u32(Byte *at, uint32_t value)
{
    at[0] = (Byte)(value >> 24), at[1] = (Byte)(value >> 16), at[2] = (Byte)(value >> 8), at[3] = (Byte)value;
}

/* -- CRC -------------------------------------------------------------------------------------------------------- */

/* Polynomials are bit-reflected: bit 31 is the coefficient of x^0. */
typedef struct {
    uint32_t polynomial;
    uint32_t table[8][256];
    /* x^n mod P for the distances that folding moves a register over, and the two numbers of the last reduction. */
    uint64_t by_64[2], by_16[2], last, poly[2];
} Crc;

static Crc zip = {.polynomial = 0xEDB88320u};
static int can_fold = 0;

static uint32_t times_x(uint32_t value, uint32_t polynomial)
{
    return value & 1 ? value >> 1 ^ polynomial : value >> 1;
}

/* x^n mod P, shifted by one: the product of two reflected numbers is one bit short. */
static uint64_t power_of_x(int n, uint32_t polynomial)
{
    uint32_t value = 0x80000000u;
    while (n-- > 0) value = times_x(value, polynomial);
    return (uint64_t)value << 1;
}

static void prepare(Crc *crc)
{
    uint32_t p = crc->polynomial;
    for (int i = 0; i < 256; i++) {
        uint32_t value = (uint32_t)i;
        for (int bit = 0; bit < 8; bit++) value = times_x(value, p);
        crc->table[0][i] = value;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) {
            uint32_t before = crc->table[k - 1][i];
            crc->table[k][i] = before >> 8 ^ crc->table[0][before & 0xFF];
        }
    crc->by_64[0] = power_of_x(64 * 8 + 32, p), crc->by_64[1] = power_of_x(64 * 8 - 32, p);
    crc->by_16[0] = power_of_x(16 * 8 + 32, p), crc->by_16[1] = power_of_x(16 * 8 - 32, p);
    crc->last = power_of_x(64, p);
    /* Barrett's reduction: P itself, and x^64 divided by P. Both with 33 bits, reflected. */
    crc->poly[0] = (uint64_t)p << 1 | 1;
    uint64_t quotient = 0;
    uint32_t rest = 0x80000000u;
    for (int i = 0; i <= 32; i++) {
        /* `rest` is x^(32 + i - 1) mod P at this step; its top coefficient, x^31 times x, is the next bit. */
        if (i == 0) {
            quotient = 1;
            rest = p;
            continue;
        }
        quotient |= (uint64_t)(rest & 1) << i;
        rest = times_x(rest, p);
    }
    crc->poly[1] = quotient;
}

static uint32_t crc_by_table(const Crc *crc, uint32_t state, const Byte *data, size_t size)
{
    const uint32_t(*table)[256] = crc->table;
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = state ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                                (uint32_t)data[3] << 24);
        state = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF] ^ table[4][low >> 24] ^
                table[3][data[4]] ^ table[2][data[5]] ^ table[1][data[6]] ^ table[0][data[7]];
    }
    for (; size; data++, size--) state = state >> 8 ^ table[0][(state ^ *data) & 0xFF];
    return state;
}

#ifdef FOLDING
#define LOAD(at) _mm_loadu_si128((const __m128i *)(at))

__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i value, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(value, by, 0x00), high = _mm_clmulepi64_si128(value, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* At least 16 bytes. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t crc_by_folding(
    const Crc *crc, uint32_t state, const Byte *data, size_t size)
{
    const __m128i by_16 = _mm_set_epi64x((int64_t)crc->by_16[1], (int64_t)crc->by_16[0]);
    __m128i a = _mm_xor_si128(LOAD(data), _mm_cvtsi32_si128((int)state));
    if (size >= 64) {
        const __m128i by_64 = _mm_set_epi64x((int64_t)crc->by_64[1], (int64_t)crc->by_64[0]);
        __m128i b = LOAD(data + 16), c = LOAD(data + 32), d = LOAD(data + 48);
        for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
            a = fold(a, by_64, LOAD(data));
            b = fold(b, by_64, LOAD(data + 16));
            c = fold(c, by_64, LOAD(data + 32));
            d = fold(d, by_64, LOAD(data + 48));
        }
        a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
    } else {
        data += 16, size -= 16;
    }
    for (; size >= 16; data += 16, size -= 16) a = fold(a, by_16, LOAD(data));
    /* 128 bits to 96, to 64, to 32. */
    const __m128i low_32 = _mm_setr_epi32(~0, 0, ~0, 0);
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(a, low_32), _mm_cvtsi64_si128((int64_t)crc->last), 0x00));
    const __m128i poly = _mm_set_epi64x((int64_t)crc->poly[1], (int64_t)crc->poly[0]);
    __m128i q = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), poly, 0x10);
    a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(q, low_32), poly, 0x00), a);
    return crc_by_table(crc, (uint32_t)_mm_extract_epi32(a, 1), data, size);
}
#endif

static uint32_t checksum(const Crc *crc, const Byte *data, size_t size)
{
#ifdef FOLDING
    if (can_fold && size >= 16) return ~crc_by_folding(crc, 0xFFFFFFFFu, data, size);
#endif
    return ~crc_by_table(crc, 0xFFFFFFFFu, data, size);
}

/* -- the walk ---------------------------------------------------------------------------------------------------- */

typedef struct {
    Py_ssize_t end, count, largest;
    /* If wanted, the offsets of the entries: grown as needed, with malloc, because the lock is not held. */
    int64_t *offsets;
    Py_ssize_t room;
    int out_of_memory;
} Walk;

static int note(Walk *walk, int64_t offset)
{
    if (walk->count + 1 >= walk->room) {
        if (walk->room > PY_SSIZE_T_MAX / 4 / (Py_ssize_t)sizeof(int64_t)) return 0;
        Py_ssize_t room = 2 * walk->room;
        int64_t *grown = realloc(walk->offsets, (size_t)room * sizeof(int64_t));
        if (!grown) return 0;
        walk->offsets = grown, walk->room = room;
    }
    walk->offsets[walk->count + 1] = offset;
    return 1;
}

/* Go over the plain entries from `walk->end` on. `only` is a magic, or -1 for both. `pos` <= `size` holds throughout. */
static void walk_plain(const Byte *data, Py_ssize_t size, int only, int wrappers, int64_t base, Walk *walk)
{
    Py_ssize_t pos = walk->end;
    while (size - pos >= HEAD_0) {
        const Byte *at = data + pos;
        int64_t n = (int32_t)u32(at);
        int magic = at[4];
        int head = HEAD_0 + magic;
        if (magic > 1 || (only >= 0 && magic != only) || n < head - 4 || n > size - pos - 4) break;
        if (magic == 1 && !wrappers && at[5] & CODEC_MASK) break;
        Py_ssize_t payload = (Py_ssize_t)n + 4 - head;
        if (checksum(&zip, at + head, (size_t)payload) != u32(at + head - 4)) break;
        pos += (Py_ssize_t)n + 4;
        if (walk->offsets && !note(walk, base + pos)) {
            walk->out_of_memory = 1;
            break;
        }
        walk->count++;
        if (payload > walk->largest) walk->largest = payload;
    }
    walk->end = pos;
}

static void walk_freely(const Py_buffer *view, int only, int wrappers, int64_t base, Walk *walk)
{
    if (view->len - walk->end >= WORTH_LETTING_GO) {
        Py_BEGIN_ALLOW_THREADS
        walk_plain(view->buf, view->len, only, wrappers, base, walk);
        Py_END_ALLOW_THREADS
    } else {
        walk_plain(view->buf, view->len, only, wrappers, base, walk);
    }
}

static int is_inside(Py_ssize_t pos, const Py_buffer *view)
{
    if (pos >= 0 && pos <= view->len) return 1;
    PyErr_Format(PyExc_ValueError, "position %zd in %zd bytes", pos, view->len);
    return 0;
}

PyDoc_STRVAR(check_doc, "check(data, pos, wrappers, /)\n--\n\nSee pure.check.");

static PyObject *check(PyObject *module, PyObject *args)
{
    Py_buffer view;
    Py_ssize_t pos;
    int wrappers;
    if (!PyArg_ParseTuple(args, "y*np:check", &view, &pos, &wrappers)) return NULL;
    PyObject *result = NULL;
    if (is_inside(pos, &view)) {
        Walk walk = {.end = pos};
        walk_freely(&view, -1, wrappers, 0, &walk);
        result = Py_BuildValue("nnn", walk.end, walk.count, walk.largest);
    }
    PyBuffer_Release(&view);
    return result;
}

/* -- rows of messages -------------------------------------------------------------------------------------------- */

static PyTypeObject *row_type, *messages_type;

typedef struct {
    PyObject_HEAD
    PyObject *kind;
    Py_buffer view;
    int64_t *offsets; /* count + 1 of them */
    Py_ssize_t count;
    int64_t base;
    int magic;
    long long at, after;
} Row;

/* Payload `i` of a row, or NULL with an error. Cannot be outside the buffer, whatever the offsets say. */
static const Byte *payload_of(const Row *row, Py_ssize_t i, Py_ssize_t *size)
{
    int64_t begin = row->offsets[i] - row->base + HEAD_0 + row->magic, end = row->offsets[i + 1] - row->base;
    if (begin < 0 || begin > end || end > row->view.len) {
        PyErr_SetString(PyExc_ValueError, "a row whose offsets are not those of its bytes");
        return NULL;
    }
    *size = (Py_ssize_t)(end - begin);
    return (const Byte *)row->view.buf + begin;
}

PyDoc_STRVAR(cut_doc, "cut(kind, data, pos, base, /)\n--\n\nSee pure.cut.");

static PyObject *cut(PyObject *module, PyObject *args)
{
    PyObject *kind;
    Py_buffer view;
    Py_ssize_t pos;
    long long base;
    if (!PyArg_ParseTuple(args, "Oy*nL:cut", &kind, &view, &pos, &base)) return NULL;
    Row *row = NULL;
    Walk walk = {.end = pos, .room = 64};
    if (!is_inside(pos, &view)) goto failed;
    if (base < 0 || base > INT64_MAX - view.len) {
        PyErr_Format(PyExc_ValueError, "a message set at offset %lld", base);
        goto failed;
    }
    if (!PyType_Check(kind) || !PyType_IsSubtype((PyTypeObject *)kind, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "messages are made as a subclass of tuple");
        goto failed;
    }
    walk.offsets = malloc((size_t)walk.room * sizeof(int64_t));
    if (!walk.offsets) {
        PyErr_NoMemory();
        goto failed;
    }
    walk.offsets[0] = base + pos;
    int magic = pos + 4 < view.len && ((const Byte *)view.buf)[pos + 4] == 1;
    walk_freely(&view, magic, 0, base, &walk);
    if (walk.out_of_memory) {
        PyErr_NoMemory();
        goto failed;
    }
    row = (Row *)PyType_GenericAlloc(row_type, 0);
    if (!row) goto failed;
    Py_INCREF(kind);
    row->kind = kind;
    row->view = view;
    row->offsets = walk.offsets;
    row->count = walk.count;
    row->base = base;
    row->magic = magic;
    row->at = row->after = -1;
    return Py_BuildValue("nN", walk.end, row);
failed:
    free(walk.offsets);
    PyBuffer_Release(&view);
    return NULL;
}

static int row_traverse(PyObject *object, visitproc visit, void *arg)
{
    Row *self = (Row *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->kind);
    /* Not `view.obj`: the collector would then clear a memoryview while we still hold its buffer. */
    return 0;
}

static void row_dealloc(PyObject *object)
{
    Row *self = (Row *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->kind);
    PyBuffer_Release(&self->view);
    free(self->offsets);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static Py_ssize_t row_length(PyObject *object)
{
    Row *self = (Row *)object;
    return self->count;
}

static PyObject *row_offsets(PyObject *object, void *closure)
{
    Row *self = (Row *)object;
    PyObject *copy = PyBytes_FromStringAndSize(
        (const char *)self->offsets, (self->count + 1) * (Py_ssize_t)sizeof(int64_t));
    if (!copy) return NULL;
    PyObject *view = PyMemoryView_FromObject(copy);
    Py_DECREF(copy);
    if (!view) return NULL;
    PyObject *numbers = PyObject_CallMethod(view, "cast", "s", "q");
    Py_DECREF(view);
    return numbers;
}

static PyObject *row_views(PyObject *object, PyObject *unused)
{
    Row *self = (Row *)object;
    PyObject *whole = PyMemoryView_FromObject(object), *views = NULL;
    if (!whole || !(views = PyList_New(self->count))) goto failed;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_ssize_t size;
        const Byte *payload = payload_of(self, i, &size);
        if (!payload) goto failed;
        Py_ssize_t begin = payload - (const Byte *)self->view.buf;
        PyObject *view = PySequence_GetSlice(whole, begin, begin + size);
        if (!view) goto failed;
        PyList_SetItem(views, i, view);
    }
    Py_DECREF(whole);
    return views;
failed:
    Py_XDECREF(whole);
    Py_XDECREF(views);
    return NULL;
}

/* A row lends the bytes it was cut from, read-only, so that views of payloads keep them alive. */
static int row_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    Row *self = (Row *)object;
    return PyBuffer_FillInfo(view, object, self->view.buf, self->view.len, 1, flags);
}

typedef struct {
    PyObject_HEAD
    Row *row;
    Py_ssize_t i;
    PyObject *magic, *next; /* the offset where message `i` begins: it was the end of the one before */
} Messages;

static PyObject *row_iter(PyObject *object)
{
    Row *self = (Row *)object;
    Messages *messages = (Messages *)PyType_GenericAlloc(messages_type, 0);
    if (!messages) return NULL;
    Py_INCREF(object);
    messages->row = self;
    messages->magic = PyLong_FromLong(self->magic);
    messages->next = PyLong_FromLongLong(self->at >= 0 ? self->at : self->offsets[0]);
    if (messages->magic && messages->next) return (PyObject *)messages;
    Py_DECREF(messages);
    return NULL;
}

static int messages_traverse(PyObject *object, visitproc visit, void *arg)
{
    Messages *self = (Messages *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->row);
    return 0;
}

static void messages_dealloc(PyObject *object)
{
    Messages *self = (Messages *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->row);
    Py_CLEAR(self->magic);
    Py_CLEAR(self->next);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyObject *messages_next(PyObject *object)
{
    Messages *self = (Messages *)object;
    Row *row = self->row;
    Py_ssize_t i = self->i, size;
    if (i >= row->count) return NULL;
    const Byte *at = payload_of(row, i, &size);
    if (!at) return NULL;
    PyObject *payload = PyBytes_FromStringAndSize((const char *)at, size);
    PyObject *next;
    if (row->at < 0)
        next = PyLong_FromLongLong(row->offsets[i + 1]);
    else if (i + 1 == row->count)
        next = PyLong_FromLongLong(row->after);
    else
        Py_INCREF(next = self->next);
    /* The tuple is made directly: a call of its class would cost more than all the rest. Making it may collect
     * garbage and run anything, even this function: nothing of `self` is held across it but strong references. */
    PyObject *begin = self->next, *magic = self->magic;
    Py_INCREF(begin);
    Py_INCREF(magic);
    PyObject *message = payload && next ? PyType_GenericAlloc((PyTypeObject *)row->kind, 4) : NULL;
    if (!message) {
        Py_XDECREF(payload);
        Py_XDECREF(next);
        Py_DECREF(begin);
        Py_DECREF(magic);
        return NULL;
    }
    PyObject *before = self->next;
    Py_INCREF(next);
    self->next = next;
    self->i = i + 1;
    Py_DECREF(before);
    PyTuple_SetItem(message, 0, payload);
    PyTuple_SetItem(message, 1, begin);
    PyTuple_SetItem(message, 2, next);
    PyTuple_SetItem(message, 3, magic);
    return message;
}

static PyMemberDef row_members[] = {
    {"at", T_LONGLONG, offsetof(Row, at), 0, "the offset shared by messages inside a wrapper, or -1"},
    {"after", T_LONGLONG, offsetof(Row, after), 0, "where to go on after the last of them"},
    {NULL},
};
static PyGetSetDef row_getset[] = {
    {"offsets", row_offsets, NULL, "where the entries begin, and where the last one ends", NULL},
    {NULL},
};
static PyMethodDef row_methods[] = {
    {"views", row_views, METH_NOARGS, "The payloads, not copied."},
    {NULL},
};
static PyType_Slot row_slots[] = {
    {Py_tp_doc, "See pure.Row."},
    {Py_tp_dealloc, row_dealloc},
    {Py_tp_traverse, row_traverse},
    {Py_tp_iter, row_iter},
    {Py_tp_members, row_members},
    {Py_tp_getset, row_getset},
    {Py_tp_methods, row_methods},
    {Py_sq_length, row_length},
    {Py_bf_getbuffer, row_getbuffer},
    {0, NULL},
};
static PyType_Spec row_spec = {
    .name = "kafka2011.wire._walk.Row",
    .basicsize = sizeof(Row),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = row_slots,
};
static PyType_Slot messages_slots[] = {
    {Py_tp_dealloc, messages_dealloc},
    {Py_tp_traverse, messages_traverse},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, messages_next},
    {0, NULL},
};
static PyType_Spec messages_spec = {
    .name = "kafka2011.wire._walk.Messages",
    .basicsize = sizeof(Messages),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = messages_slots,
};

/* -- making sets, splitting frames -------------------------------------------------------------------------------- */

/* The payloads as a list of our own that holds nothing but bytes. */
static PyObject *as_bytes(PyObject *payloads)
{
    PyObject *list = PySequence_List(payloads);
    if (!list) return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (PyBytes_Check(item)) continue;
        if (!PyObject_CheckBuffer(item)) {
            PyErr_SetString(PyExc_TypeError, "a payload must be bytes");
            goto failed;
        }
        PyObject *copy = PyBytes_FromObject(item);
        if (!copy || PyList_SetItem(list, i, copy) < 0) goto failed;
    }
    return list;
failed:
    Py_DECREF(list);
    return NULL;
}

PyDoc_STRVAR(encode_doc, "encode(payloads, head, batch_size, most, /)\n--\n\nSee pure.encode.");

static PyObject *encode(PyObject *module, PyObject *args)
{
    PyObject *payloads, *result = NULL;
    const char *head;
    Py_ssize_t head_size, batch_size, most;
    if (!PyArg_ParseTuple(args, "Oy#nn:encode", &payloads, &head, &head_size, &batch_size, &most)) return NULL;
    PyObject *list = as_bytes(payloads);
    if (!list) return NULL;
    Py_ssize_t count = PyList_Size(list);
    if (head_size && batch_size < 1) {
        PyErr_Format(PyExc_ValueError, "requests of %zd messages", batch_size);
        goto done;
    }
    /* The bytes of the whole, and that every size fits its field. */
    Py_ssize_t total = 0, set = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t size = PyBytes_Size(PyList_GetItem(list, i));
        if (head_size && i % batch_size == 0) {
            set = 0;
            total += 8 + head_size;
        }
        if (size > INT32_MAX - 6 || (head_size && size > INT32_MAX - 14 - head_size - set) ||
            size > PY_SSIZE_T_MAX - 64 - head_size - total) {
            PyErr_SetString(PyExc_OverflowError, "a message set larger than its size field can say");
            goto done;
        }
        set += HEAD_1 + size;
        total += HEAD_1 + size;
        if (head_size && set > most && i % batch_size) {
            PyErr_Format(PyExc_OverflowError, "a message set of more than %zd bytes", most);
            goto done;
        }
    }
    result = PyBytes_FromStringAndSize(NULL, total);
    if (!result) goto done;
    Byte *to = (Byte *)PyBytes_AsString(result), *request = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        const Byte *payload = (const Byte *)PyBytes_AsString(item);
        Py_ssize_t size = PyBytes_Size(item);
        if (head_size && i % batch_size == 0) {
            request = to;
            memcpy(to + 4, head, (size_t)head_size);
            to += 8 + head_size;
        }
        put_u32(to, (uint32_t)(size + 6));
        to[4] = 1, to[5] = 0;
        put_u32(to + 6, checksum(&zip, payload, (size_t)size));
        memcpy(to + HEAD_1, payload, (size_t)size);
        to += HEAD_1 + size;
        if (request && (i + 1 == count || (i + 1) % batch_size == 0)) {
            Py_ssize_t whole = to - request;
            put_u32(request, (uint32_t)(whole - 4));
            put_u32(request + 4 + head_size, (uint32_t)(whole - 8 - head_size));
        }
    }
done:
    Py_DECREF(list);
    return result;
}

PyDoc_STRVAR(split_doc, "split(data, pos, smallest, largest, /)\n--\n\nSee pure.split.");

static PyObject *split(PyObject *module, PyObject *args)
{
    Py_buffer view;
    Py_ssize_t pos, smallest, largest;
    if (!PyArg_ParseTuple(args, "y*nnn:split", &view, &pos, &smallest, &largest)) return NULL;
    PyObject *frames = is_inside(pos, &view) ? PyList_New(0) : NULL;
    if (!frames) goto failed;
    Py_ssize_t size = -1;
    while (view.len - pos >= 4) {
        const Byte *at = (const Byte *)view.buf + pos;
        size = (int32_t)u32(at);
        if (size < 0 || size < smallest || size > largest || size > view.len - pos - 4) break;
        PyObject *frame = PyBytes_FromStringAndSize((const char *)at + 4, size);
        if (!frame || PyList_Append(frames, frame) < 0) {
            Py_XDECREF(frame);
            goto failed;
        }
        Py_DECREF(frame);
        pos += 4 + size;
        size = -1;
    }
    PyBuffer_Release(&view);
    return Py_BuildValue("Nnn", frames, pos, size);
failed:
    Py_XDECREF(frames);
    PyBuffer_Release(&view);
    return NULL;
}

/* -- handing messages out ----------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *more, *may_pass, *in_hand, *rest;
    char gate;
} Hand;

static PyObject *hand_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *more, *may_pass;
    if (!PyArg_ParseTuple(args, "OO:Hand", &more, &may_pass)) return NULL;
    Hand *self = (Hand *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    Py_INCREF(more);
    Py_INCREF(may_pass);
    self->more = more;
    self->may_pass = may_pass;
    return (PyObject *)self;
}

static int hand_traverse(PyObject *object, visitproc visit, void *arg)
{
    Hand *self = (Hand *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->more);
    Py_VISIT(self->may_pass);
    Py_VISIT(self->in_hand);
    Py_VISIT(self->rest);
    return 0;
}

static int hand_clear(PyObject *object)
{
    Hand *self = (Hand *)object;
    Py_CLEAR(self->more);
    Py_CLEAR(self->may_pass);
    Py_CLEAR(self->in_hand);
    Py_CLEAR(self->rest);
    return 0;
}

static void hand_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    hand_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* Call back without arguments; the callee may do anything to `self`, so it is held meanwhile. */
static PyObject *call_back(PyObject *callee)
{
    if (!callee) {
        PyErr_SetString(PyExc_RuntimeError, "this iterator is being torn down");
        return NULL;
    }
    Py_INCREF(callee);
    PyObject *result = PyObject_CallNoArgs(callee);
    Py_DECREF(callee);
    return result;
}

static void replace(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

static PyObject *hand_next(PyObject *object)
{
    Hand *self = (Hand *)object;
    for (;;) {
        PyObject *rest = self->rest;
        if (rest) {
            Py_INCREF(rest);
            PyObject *message = PyIter_Next(rest);
            Py_DECREF(rest);
            if (message) {
                Py_INCREF(message);
                replace(&self->in_hand, message);
                if (!self->gate) return message;
                PyObject *answer = call_back(self->may_pass);
                int passes = answer ? PyObject_IsTrue(answer) : -1;
                Py_XDECREF(answer);
                if (passes > 0) return message;
                Py_DECREF(message);
                if (passes < 0) return NULL;
                replace(&self->rest, NULL);
            } else if (PyErr_Occurred()) {
                return NULL;
            }
        }
        PyObject *more = call_back(self->more);
        if (!more) return NULL;
        PyObject *next = more == Py_None ? NULL : PyObject_GetIter(more);
        int ended = more == Py_None;
        Py_DECREF(more);
        if (!next && !ended) return NULL;
        replace(&self->rest, next);
        if (ended) return NULL;
    }
}

static PyMemberDef hand_members[] = {
    {"gate", T_BOOL, offsetof(Hand, gate), 0, "ask may_pass before each message"},
    {"in_hand", T_OBJECT, offsetof(Hand, in_hand), 0, "the message last handed out"},
    {NULL},
};

static PyObject *hand_get_rest(PyObject *object, void *closure)
{
    PyObject *rest = ((Hand *)object)->rest;
    if (!rest) rest = Py_None;
    Py_INCREF(rest);
    return rest;
}

static int hand_set_rest(PyObject *object, PyObject *value, void *closure)
{
    if (value == Py_None) value = NULL;
    if (value && !PyIter_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "the rest must be an iterator, or None");
        return -1;
    }
    Py_XINCREF(value);
    replace(&((Hand *)object)->rest, value);
    return 0;
}

static PyGetSetDef hand_getset[] = {
    {"rest", hand_get_rest, hand_set_rest, "the messages to come of this chunk", NULL},
    {NULL},
};
static PyType_Slot hand_slots[] = {
    {Py_tp_doc, "See pure.Hand."},
    {Py_tp_new, hand_new},
    {Py_tp_dealloc, hand_dealloc},
    {Py_tp_traverse, hand_traverse},
    {Py_tp_clear, hand_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, hand_next},
    {Py_tp_members, hand_members},
    {Py_tp_getset, hand_getset},
    {0, NULL},
};
static PyType_Spec hand_spec = {
    .name = "kafka2011.wire._walk.Hand",
    .basicsize = sizeof(Hand),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = hand_slots,
};

/* -- the module ---------------------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"check", check, METH_VARARGS, check_doc},
    {"cut", cut, METH_VARARGS, cut_doc},
    {"encode", encode, METH_VARARGS, encode_doc},
    {"split", split, METH_VARARGS, split_doc},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_walk", "pure.py, compiled.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__walk(void)
{
    prepare(&zip);
#ifdef FOLDING
    __builtin_cpu_init();
    can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    row_type = (PyTypeObject *)PyType_FromSpec(&row_spec);
    messages_type = (PyTypeObject *)PyType_FromSpec(&messages_spec);
    PyObject *hand = PyType_FromSpec(&hand_spec);
    if (!row_type || !messages_type || !hand || PyModule_AddIntConstant(module, "VERSION", VERSION) < 0 ||
        PyModule_AddObjectRef(module, "Hand", hand) < 0 ||
        PyModule_AddObjectRef(module, "Row", (PyObject *)row_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(hand);
    return module;
}
