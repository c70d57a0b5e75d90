/* What the machine itself can do, with nothing but system calls, and a reader that costs next to nothing.
 *
 *     limits loopback BYTES PIECE               send BYTES over loopback TCP, PIECE a call
 *     limits append FILE BYTES PIECE EVERY      append; sync in a thread after every EVERY bytes (0: once at the end)
 *     limits sendfile FILE BYTES PIECE          send FILE again and again over loopback with sendfile(2)
 *     limits fetch PORT TOPIC START SPAN PIECE BYTES AHEAD
 *                                               fetch PIECE bytes at a time from a broker on loopback, from START on,
 *                                               from the beginning again after SPAN bytes, AHEAD requests at once
 *
 * Prints: bytes moved, seconds, CPU seconds of this program. Sender and receiver are processes of their own. The
 * receiver of `loopback` and `sendfile` and the reader of `fetch` are one loop, so that they can be compared.
 * limits_loops.py is the same in Python, for machines without a compiler. Build: cc -O2 -pthread limits.c -o limits
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (1 << 20)

static char buffer[BUFFER];

static void die(const char *what)
{
    fprintf(stderr, "limits: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void)
{
    double total = 0;
    int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage used;
        getrusage(who[i], &used);
        total += used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    }
    return total;
}

static void report(long bytes, double seconds)
{
    printf("%ld %.6f %.6f\n", bytes, seconds, cpu());
}

static int64_t number(const char *text)
{
    char *end;
    int64_t value = strtoll(text, &end, 10);
    if (end == text || *end || value < 0) {
        fprintf(stderr, "limits: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

/* --- sockets --- */

static int connect_to(int port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&where, sizeof where) < 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            die("send");
        if (n > 0)
            data += n, size -= n;
    }
}

static ssize_t receive(int fd)
{
    ssize_t n;
    while ((n = recv(fd, buffer, BUFFER, 0)) < 0)
        if (errno != EINTR)
            die("recv");
    return n;
}

/* Run `work` in a child on one end of a connection and time how long the other end receives. */
static void transfer(void (*work)(int fd, long bytes, long piece, int file), long bytes, long piece, int file)
{
    struct sockaddr_in where = {.sin_family = AF_INET};
    socklen_t size = sizeof where;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&where, size) < 0 || listen(listener, 1) < 0)
        die("listen");
    getsockname(listener, (struct sockaddr *)&where, &size);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        int fd = connect_to(ntohs(where.sin_port));
        if (recv(fd, buffer, 1, 0) != 1)
            exit(1);
        work(fd, bytes, piece, file);
        exit(0);
    }
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("accept");
    double started = now();
    send_all(fd, "!", 1);
    long received = 0;
    for (ssize_t n; (n = receive(fd)) > 0;)
        received += n;
    double seconds = now() - started;
    int status;
    if (waitpid(child, &status, 0) < 0 || status) {
        fprintf(stderr, "limits: the sender failed\n");
        exit(1);
    }
    report(received, seconds);
}

static void send_pieces(int fd, long bytes, long piece, int file)
{
    (void)file;
    char *data = calloc(1, piece);
    if (!data)
        die("calloc");
    for (long sent = 0; sent + piece <= bytes; sent += piece)
        send_all(fd, data, piece);
}

static void send_file(int fd, long bytes, long piece, int file)
{
    off_t size = lseek(file, 0, SEEK_END);
    if (size < piece) {
        fprintf(stderr, "limits: the file is smaller than a piece\n");
        exit(1);
    }
    off_t at = 0;
    for (long sent = 0; sent + piece <= bytes; sent += piece) {
        if (at + piece > size)
            at = 0;
        for (off_t end = at + piece; at < end;)
            if (sendfile(fd, file, &at, end - at) <= 0 && errno != EINTR)
                die("sendfile");
    }
}

/* --- append --- */

static struct {
    int fd, ended;
    long every, written, synced;
    pthread_mutex_t lock;
    pthread_cond_t more;
} log_file = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Sync whenever enough is written, one sync at a time; what is written meanwhile is covered by the next. */
static void *sync_file(void *nothing)
{
    (void)nothing;
    for (int last = 0; !last;) {
        pthread_mutex_lock(&log_file.lock);
        while (!log_file.ended && (!log_file.every || log_file.written - log_file.synced < log_file.every))
            pthread_cond_wait(&log_file.more, &log_file.lock);
        last = log_file.ended;
        long target = log_file.written;
        pthread_mutex_unlock(&log_file.lock);
        if (fsync(log_file.fd) < 0)
            die("fsync");
        pthread_mutex_lock(&log_file.lock);
        log_file.synced = target;
        pthread_mutex_unlock(&log_file.lock);
    }
    return NULL;
}

static void append(const char *path, long bytes, long piece, long every)
{
    pthread_t syncer;
    char *data = malloc(piece);
    log_file.fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    log_file.every = every;
    if (!data || log_file.fd < 0)
        die(path);
    memset(data, 'x', piece);
    double started = now();
    if (pthread_create(&syncer, NULL, sync_file, NULL))
        die("pthread_create");
    long written = 0;
    while (written + piece <= bytes) {
        for (long done = 0; done < piece;) {
            ssize_t n = write(log_file.fd, data + done, piece - done);
            if (n < 0 && errno != EINTR)
                die(path);
            if (n > 0)
                done += n;
        }
        written += piece;
        pthread_mutex_lock(&log_file.lock);
        log_file.written = written;
        pthread_cond_signal(&log_file.more);
        pthread_mutex_unlock(&log_file.lock);
    }
    pthread_mutex_lock(&log_file.lock);
    log_file.ended = 1;
    pthread_cond_signal(&log_file.more);
    pthread_mutex_unlock(&log_file.lock);
    pthread_join(syncer, NULL);
    report(written, now() - started);
}

/* --- fetch --- */

static char *put(char *at, uint64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--, value >>= 8)
        at[i] = (char)value;
    return at + width;
}

/* A FETCH of Kafka 0.7: size, key 1, topic, partition 0, offset, most bytes. */
static size_t fetch_request(char *request, const char *topic, int64_t offset, int32_t most)
{
    size_t length = strlen(topic);
    char *at = put(put(put(request, 20 + length, 4), 1, 2), length, 2);
    memcpy(at, topic, length);
    put(put(put(at + length, 0, 4), offset, 8), most, 4);
    return 24 + length;
}

static void fetch(int port, const char *topic, int64_t start, int64_t span, long piece, long bytes, long ahead)
{
    long count = bytes / piece, asked = 0, got = 0, fits = span / piece;
    if (strlen(topic) > 200 || fits < 1 || piece > INT32_MAX - 2) {
        fprintf(stderr, "limits: nothing to fetch like that\n");
        exit(2);
    }
    char request[256], expected[6];
    put(put(expected, piece + 2, 4), 0, 2);
    int fd = connect_to(port);
    double started = now();
    long head = 0, left = piece; /* bytes seen of this answer's head, missing of its body */
    while (got < count) {
        while (asked < count && asked - got < ahead) {
            size_t size = fetch_request(request, topic, start + asked % fits * piece, piece);
            send_all(fd, request, size);
            asked++;
        }
        ssize_t n = receive(fd);
        if (n == 0) {
            fprintf(stderr, "limits: the broker closed the connection\n");
            exit(1);
        }
        for (ssize_t at = 0; at < n;) {
            for (; head < 6 && at < n; at++, head++)
                if (buffer[at] != expected[head]) {
                    fprintf(stderr, "limits: an answer that is not %ld bytes without an error\n", piece);
                    exit(1);
                }
            long some = n - at < left ? n - at : left;
            at += some, left -= some;
            if (head == 6 && left == 0)
                got++, head = 0, left = piece;
        }
    }
    report(got * piece, now() - started);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (argc == 4 && !strcmp(what, "loopback"))
        transfer(send_pieces, number(argv[2]), number(argv[3]), -1);
    else if (argc == 6 && !strcmp(what, "append"))
        append(argv[2], number(argv[3]), number(argv[4]), number(argv[5]));
    else if (argc == 5 && !strcmp(what, "sendfile")) {
        int file = open(argv[2], O_RDONLY);
        if (file < 0)
            die(argv[2]);
        transfer(send_file, number(argv[3]), number(argv[4]), file);
    } else if (argc == 9 && !strcmp(what, "fetch"))
        fetch(number(argv[2]), argv[3], number(argv[4]), number(argv[5]), number(argv[6]), number(argv[7]),
              number(argv[8]));
    else {
        fprintf(stderr, "usage: see the top of limits.c\n");
        return 2;
    }
    return 0;
}
