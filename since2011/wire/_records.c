/* Read and write the records of a batch in compiled code: `pure_records.py`, with the same names, results and errors.
 *
 * Read pure_records.py first. It says what is done; here are only the reasons for doing it another way:
 *
 *   - No length is trusted: positions are compared with the size of the buffer before every byte that is read.
 *   - A record is made as its type makes itself: allocated by the type, then filled. Whoever could see it between has no
 *     reference to it, except the garbage collector, which passes over what is not filled yet.
 *   - The collector is told to pass over records altogether: they hold numbers, texts and bytes, and nothing that could
 *     lead back to them. A batch is thousands of them, and going through all again and again cost more than making them.
 *   - Offsets and times that need more than 64 bits are added up by Python.
 *
 * Only the stable ABI of Python 3.11 is used: one build serves every later version.
 */

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char Byte;

/* Raised together with pure_records.VERSION whenever a name, an argument or a result changes: a build that was left over
 * from before is then not used. */
enum { VERSION = 2 };
enum { ATTRIBUTES = 1, LONGEST = 10, NULL_SIZE = 1, FILLED = 5 };
static const long long CREATE_TIME = -1;

static PyObject *invalid_message = NULL;

typedef struct {
    const Byte *data;
    Py_ssize_t size, pos;
    Py_ssize_t count;
} Walk;

/* What IndexError is in Python. */
static int ends_inside(const Walk *walk)
{
    PyErr_Format(invalid_message, "a batch of %zd records ends inside one of them", walk->count);
    return -1;
}

/* A zig-zag varint; 0, or -1 with an error set. */
static int varint(Walk *walk, int64_t *value)
{
    uint64_t raw = 0;
    Py_ssize_t at = walk->pos;
    for (int n = 0; n < LONGEST && at < walk->size; n++, at++) {
        Byte byte = walk->data[at];
        raw |= (uint64_t)(byte & 0x7F) << 7 * n;
        if (byte < 0x80) {
            if (n == LONGEST - 1 && byte > 1) break;
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            walk->pos = at + 1;
            return 0;
        }
    }
    PyErr_Format(invalid_message, "a varint at byte %zd does not end", walk->pos);
    return -1;
}

/* The same where the first byte may be missing. */
static int peeked_varint(Walk *walk, int64_t *value)
{
    return walk->pos >= walk->size ? ends_inside(walk) : varint(walk, value);
}

static int overrun(Py_ssize_t number, const char *what, int64_t length, Py_ssize_t left)
{
    PyErr_Format(
        invalid_message, "record %zd has a %s of %lld bytes, %zd are there", number, what, (long long)length, left);
    return -1;
}

/* Key or value: a new reference to bytes or None; NULL with an error set. */
static PyObject *nullable(Walk *walk, Py_ssize_t end, Py_ssize_t number, const char *what)
{
    if (walk->pos >= walk->size) return ends_inside(walk), NULL;
    if (walk->data[walk->pos] == NULL_SIZE) {
        walk->pos++;
        Py_INCREF(Py_None);
        return Py_None;
    }
    int64_t length;
    if (varint(walk, &length) < 0) return NULL;
    if (length < 0 || length > end - walk->pos) return overrun(number, what, length, end - walk->pos), NULL;
    PyObject *found = PyBytes_FromStringAndSize((const char *)walk->data + walk->pos, (Py_ssize_t)length);
    walk->pos += (Py_ssize_t)length;
    return found;
}

/* A header: a pair of text and bytes or None. */
static PyObject *header(Walk *walk, Py_ssize_t end, Py_ssize_t number)
{
    int64_t length;
    if (varint(walk, &length) < 0) return NULL;
    if (length < 0 || length > end - walk->pos) return overrun(number, "header's key", length, end - walk->pos), NULL;
    PyObject *name = PyUnicode_DecodeUTF8((const char *)walk->data + walk->pos, (Py_ssize_t)length, NULL);
    if (!name) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            PyErr_Format(invalid_message, "record %zd has a header whose key is not UTF-8", number);
        return NULL;
    }
    walk->pos += (Py_ssize_t)length;
    PyObject *content = NULL;
    if (varint(walk, &length) == 0) {
        if (length < -1 || length > end - walk->pos) {
            overrun(number, "header", length, end - walk->pos);
        } else if (length < 0) {
            Py_INCREF(Py_None);
            content = Py_None;
        } else {
            content = PyBytes_FromStringAndSize((const char *)walk->data + walk->pos, (Py_ssize_t)length);
            walk->pos += (Py_ssize_t)length;
        }
    }
    PyObject *pair = content ? PyTuple_Pack(2, name, content) : NULL;
    Py_DECREF(name);
    Py_XDECREF(content);
    return pair;
}

static PyObject *headers(Walk *walk, Py_ssize_t end, Py_ssize_t number)
{
    if (walk->pos >= walk->size) return ends_inside(walk), NULL;
    if (walk->data[walk->pos] == 0) {
        walk->pos++;
        return PyTuple_New(0);
    }
    int64_t n;
    if (varint(walk, &n) < 0) return NULL;
    if (n < 0 || n > end - walk->pos) {
        PyErr_Format(invalid_message, "record %zd says it has %lld headers", number, (long long)n);
        return NULL;
    }
    /* A list first: a lying number must not allocate. */
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *pair = header(walk, end, number);
        if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    PyObject *found = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return found;
}

static PyObject *sum(int64_t a, int64_t b)
{
    int64_t total;
    if (!__builtin_add_overflow(a, b, &total)) return PyLong_FromLongLong(total);
    PyObject *left = PyLong_FromLongLong(a), *right = PyLong_FromLongLong(b);
    PyObject *found = left && right ? PyNumber_Add(left, right) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return found;
}

/* What all records of the call have in common. */
typedef struct {
    PyTypeObject *type;
    allocfunc allocate;
    PyObject *front, *back;
    Py_ssize_t n_front, n_back;
    long long base_offset, base_timestamp, stamp;
} Make;

static PyObject *record(Walk *walk, const Make *make, Py_ssize_t number)
{
    int64_t length, timestamp, delta;
    if (peeked_varint(walk, &length) < 0) return NULL;
    if (length < 0 || length > walk->size - walk->pos) {
        PyErr_Format(
            invalid_message, "record %zd says %lld bytes, %zd are there", number, (long long)length,
            walk->size - walk->pos);
        return NULL;
    }
    Py_ssize_t end = walk->pos + (Py_ssize_t)length;
    walk->pos += ATTRIBUTES;
    if (peeked_varint(walk, &timestamp) < 0 || peeked_varint(walk, &delta) < 0) return NULL;
    PyObject *fields[FILLED] = {NULL, NULL, NULL, NULL, NULL};
    PyObject *made = NULL;
    if (!(fields[2] = nullable(walk, end, number, "key"))) goto done;
    if (!(fields[3] = nullable(walk, end, number, "value"))) goto done;
    if (!(fields[4] = headers(walk, end, number))) goto done;
    if (walk->pos != end) {
        PyErr_Format(invalid_message, "record %zd ends at byte %zd and said %zd", number, walk->pos, end);
        goto done;
    }
    if (!(fields[0] = sum(make->base_offset, delta))) goto done;
    fields[1] = make->stamp == CREATE_TIME ? sum(make->base_timestamp, timestamp) : PyLong_FromLongLong(make->stamp);
    if (!fields[1]) goto done;
    made = make->allocate(make->type, make->n_front + FILLED + make->n_back);
    if (!made) goto done;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < make->n_front; i++) {
        PyObject *item = PyTuple_GetItem(make->front, i);
        Py_XINCREF(item);
        PyTuple_SetItem(made, at++, item);
    }
    for (int i = 0; i < FILLED; i++) {
        PyTuple_SetItem(made, at++, fields[i]); /* takes the reference */
        fields[i] = NULL;
    }
    for (Py_ssize_t i = 0; i < make->n_back; i++) {
        PyObject *item = PyTuple_GetItem(make->back, i);
        Py_XINCREF(item);
        PyTuple_SetItem(made, at++, item);
    }
    PyObject_GC_UnTrack(made);
done:
    for (int i = 0; i < FILLED; i++) Py_XDECREF(fields[i]);
    return made;
}

PyDoc_STRVAR(walk_records_doc, "See pure_records.walk_records.");

static PyObject *walk_records(PyObject *module, PyObject *args)
{
    Py_buffer body;
    Walk walk;
    Make make;
    PyObject *type;
    (void)module;
    if (!PyArg_ParseTuple(
            args, "y*nO!O!O!LLL", &body, &walk.count, &PyType_Type, &type, &PyTuple_Type, &make.front, &PyTuple_Type,
            &make.back, &make.base_offset, &make.base_timestamp, &make.stamp))
        return NULL;
    PyObject *found = NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "records are made as a kind of tuple");
        goto done;
    }
    make.type = (PyTypeObject *)type;
    make.allocate = (allocfunc)PyType_GetSlot(make.type, Py_tp_alloc);
    make.n_front = PyTuple_Size(make.front), make.n_back = PyTuple_Size(make.back);
    walk.data = body.buf, walk.size = body.len, walk.pos = 0;
    found = PyList_New(0);
    for (Py_ssize_t number = 0; found && number < walk.count; number++) {
        PyObject *one = record(&walk, &make, number);
        if (!one || PyList_Append(found, one) < 0) Py_CLEAR(found);
        Py_XDECREF(one);
    }
    if (found && walk.pos != walk.size) {
        PyErr_Format(
            invalid_message, "%zd bytes are left after the %zd records of a batch", walk.size - walk.pos, walk.count);
        Py_CLEAR(found);
    }
done:
    PyBuffer_Release(&body);
    return found;
}

/* -- writing ------------------------------------------------------------------------------------------------------ */

/* One record on its way: its headers as a list of our own (NULL for none), its time after the first one's, and the
 * bytes after its length. */
typedef struct {
    PyObject *headers;
    int64_t delta;
    Py_ssize_t size;
} Laid;

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static Py_ssize_t varint_size(int64_t value)
{
    Py_ssize_t size = 1;
    for (uint64_t left = zigzag(value); left >= 0x80; left >>= 7) size++;
    return size;
}

static Byte *put_varint(Byte *to, int64_t value)
{
    uint64_t left = zigzag(value);
    for (; left >= 0x80; left >>= 7) *to++ = (Byte)(left | 0x80);
    *to++ = (Byte)left;
    return to;
}

/* The bytes a field takes with its length, of bytes or None; -1 with an error. Not more than a record may have. */
static Py_ssize_t field_size(PyObject *item)
{
    if (item == Py_None) return 1;
    if (!PyBytes_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "key, value and header are bytes or None");
        return -1;
    }
    Py_ssize_t size = PyBytes_Size(item);
    if (size > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "records larger than a batch can be");
        return -1;
    }
    return varint_size(size) + size;
}

static Byte *put_bytes(Byte *to, const char *bytes, Py_ssize_t size)
{
    to = put_varint(to, size);
    memcpy(to, bytes, (size_t)size);
    return to + size;
}

static Byte *put_field(Byte *to, PyObject *item)
{
    return item == Py_None ? put_varint(to, -1) : put_bytes(to, PyBytes_AsString(item), PyBytes_Size(item));
}

/* The bytes of a list of headers without their count, -1 with an error. Every header is looked at, and is a tuple. */
static Py_ssize_t headers_size(PyObject *headers)
{
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(headers); i++) {
        PyObject *header = PyList_GetItem(headers, i);
        if (!PyTuple_Check(header) || PyTuple_Size(header) != 2 || !PyUnicode_Check(PyTuple_GetItem(header, 0))) {
            PyErr_SetString(PyExc_TypeError, "a header is a tuple of a text and bytes or None");
            return -1;
        }
        Py_ssize_t size, content = field_size(PyTuple_GetItem(header, 1));
        if (content < 0 || !PyUnicode_AsUTF8AndSize(PyTuple_GetItem(header, 0), &size)) return -1;
        total += content;
        if (size > INT32_MAX || (total += varint_size(size) + size) > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "records larger than a batch can be");
            return -1;
        }
    }
    return total;
}

/* Measure the row at `i`, `first` being the first row's time; its bytes with the length, -1 with an error. */
static Py_ssize_t measure(PyObject *row, Py_ssize_t i, int64_t *first, int64_t *latest, Laid *laid)
{
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 4) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple of timestamp, key, value and headers");
        return -1;
    }
    int64_t time = PyLong_AsLongLong(PyTuple_GetItem(row, 0));
    if (time == -1 && PyErr_Occurred()) return -1;
    if (i == 0) *first = *latest = time;
    if (time > *latest) *latest = time;
    if (__builtin_sub_overflow(time, *first, &laid->delta)) {
        PyErr_SetString(PyExc_OverflowError, "times too far apart");
        return -1;
    }
    Py_ssize_t key = field_size(PyTuple_GetItem(row, 1));
    Py_ssize_t value = key < 0 ? -1 : field_size(PyTuple_GetItem(row, 2));
    if (value < 0) return -1;
    Py_ssize_t headers = 0, count = 0;
    laid->headers = PySequence_List(PyTuple_GetItem(row, 3));
    if (!laid->headers) return -1;
    count = PyList_Size(laid->headers);
    if (count && (headers = headers_size(laid->headers)) < 0) return -1;
    laid->size = 1 + varint_size(laid->delta) + varint_size(i) + key + value + varint_size(count) + headers;
    return varint_size(laid->size) + laid->size;
}

static Byte *put_record(Byte *to, PyObject *row, Py_ssize_t i, const Laid *laid)
{
    to = put_varint(to, laid->size);
    *to++ = 0;
    to = put_varint(to, laid->delta);
    to = put_varint(to, i);
    to = put_field(to, PyTuple_GetItem(row, 1));
    to = put_field(to, PyTuple_GetItem(row, 2));
    Py_ssize_t count = PyList_Size(laid->headers);
    to = put_varint(to, count);
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *header = PyList_GetItem(laid->headers, n);
        Py_ssize_t size;
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(header, 0), &size);
        to = put_field(put_bytes(to, name, size), PyTuple_GetItem(header, 1));
    }
    return to;
}

PyDoc_STRVAR(lay_records_doc, "lay_records(rows, /)\n--\n\nSee pure_records.lay_records.");

static PyObject *lay_records(PyObject *module, PyObject *rows)
{
    (void)module;
    /* A list of our own: the headers of a row may be a sequence whose code changes the rows. */
    PyObject *list = PySequence_List(rows), *body = NULL;
    if (!list) return NULL;
    Py_ssize_t count = PyList_Size(list), total = 0;
    int64_t first = 0, latest = 0;
    Laid *laid = count ? PyMem_Calloc((size_t)count, sizeof(Laid)) : NULL;
    if (!laid) {
        if (count) PyErr_NoMemory();
        else PyErr_SetString(PyExc_ValueError, "a batch without records");
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t size = measure(PyList_GetItem(list, i), i, &first, &latest, &laid[i]);
        if (size < 0) goto done;
        if ((total += size) > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "records larger than a batch can be");
            goto done;
        }
    }
    body = PyBytes_FromStringAndSize(NULL, total);
    if (!body) goto done;
    Byte *to = (Byte *)PyBytes_AsString(body);
    for (Py_ssize_t i = 0; i < count; i++) to = put_record(to, PyList_GetItem(list, i), i, &laid[i]);
done:
    for (Py_ssize_t i = 0; laid && i < count; i++) Py_XDECREF(laid[i].headers);
    PyMem_Free(laid);
    Py_DECREF(list);
    return body ? Py_BuildValue("NL", body, (long long)latest) : NULL;
}

PyDoc_STRVAR(murmur2_doc, "murmur2(data, /)\n--\n\nSee pure_records.murmur2.");

static PyObject *murmur2(PyObject *module, PyObject *data)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint32_t m = 0x5bd1e995;
    const Byte *at = view.buf;
    Py_ssize_t left = view.len;
    uint32_t h = 0x9747b28c ^ (uint32_t)left;
    for (; left >= 4; left -= 4, at += 4) {
        uint32_t k = ((uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0]) * m;
        h = (h * m) ^ ((k ^ k >> 24) * m);
    }
    if (left) {
        for (Py_ssize_t i = 0; i < left; i++) h ^= (uint32_t)at[i] << 8 * i;
        h *= m;
    }
    PyBuffer_Release(&view);
    h = (h ^ h >> 13) * m;
    return PyLong_FromUnsignedLong(h ^ h >> 15);
}

static PyMethodDef functions[] = {
    {"lay_records", lay_records, METH_O, lay_records_doc},
    {"murmur2", murmur2, METH_O, murmur2_doc},
    {"walk_records", walk_records, METH_VARARGS, walk_records_doc},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_records", "pure_records.py, compiled.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__records(void)
{
    PyObject *errors = PyImport_ImportModule("kafka2011.errors");
    if (!errors) return NULL;
    invalid_message = PyObject_GetAttrString(errors, "InvalidMessage");
    Py_DECREF(errors);
    if (!invalid_message) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0) Py_CLEAR(module);
    return module;
}
