//go:build cgo && (linux || darwin)

#define _POSIX_C_SOURCE 200809L

#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static size_t raw_write(int fd, const unsigned char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t took = write(fd, p + done, n - done);
		if (took < 0 && errno == EINTR)
			continue;
		if (took < 0)
			break;
		done += (size_t)took;
	}
	return done;
}

static size_t raw_read(int fd, unsigned char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, p + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got < 0 ? errno : 0;
			break;
		}
		done += (size_t)got;
	}
	return done;
}

/*
 * WRITE_BYTES defines a loop of calls that write the byte c each; a call that
 * failed is false.
 */
#define WRITE_BYTES(name, call)                                     \
	static int64_t name(struct stream *s, int64_t calls)        \
	{                                                           \
		unsigned char c = (unsigned char)s->phase;          \
		int64_t i;                                          \
		for (i = 0; i < calls; i++) {                       \
			if (!(call))                                \
				break;                              \
			c = c < PERIOD - 1 ? (unsigned char)(c + 1) : 0; \
		}                                                   \
		s->phase = c;                                       \
		return i;                                           \
	}

WRITE_BYTES(write_raw, raw_write(s->fd, &c, 1) == 1)
WRITE_BYTES(write_fputc, fputc(c, s->file) != EOF)
WRITE_BYTES(write_putc, putc(c, s->file) != EOF)
WRITE_BYTES(write_putc_unlocked, putc_unlocked(c, s->file) != EOF)
WRITE_BYTES(write_fwrite, fwrite(&c, 1, 1, s->file) == 1)
WRITE_BYTES(write_dfputc, dfputc(c, s->df) != DF_EOF)
WRITE_BYTES(write_dfwrite, dfwrite(&c, 1, 1, s->df) == 1)

/*
 * WRITE_ELEMENTS is the same for calls that write n bytes from p each; s->element
 * holds the pattern for any phase.
 */
#define WRITE_ELEMENTS(name, call)                                  \
	static int64_t name(struct stream *s, int64_t calls)        \
	{                                                           \
		size_t size = s->setup.size, count = s->setup.count;\
		size_t step = size * count % PERIOD;                \
		int64_t i;                                          \
		for (i = 0; i < calls; i++) {                       \
			const unsigned char *p = s->element + s->phase; \
			if (!(call))                                \
				break;                              \
			s->phase = (s->phase + step) % PERIOD;      \
		}                                                   \
		return i;                                           \
	}

WRITE_ELEMENTS(elements_raw, raw_write(s->fd, p, size * count) == size * count)
WRITE_ELEMENTS(elements_fwrite, fwrite(p, size, count, s->file) == count)
WRITE_ELEMENTS(elements_dfwrite, dfwrite(p, size, count, s->df) == count)

/* READ_BYTES defines a loop of calls that read a byte each, or EOF. */
#define READ_BYTES(name, call)                                      \
	static int64_t name(struct stream *s, int64_t calls)        \
	{                                                           \
		uint64_t ones = s->ones, twos = s->twos;            \
		unsigned char b;                                    \
		int64_t i;                                          \
		(void)b;                                            \
		for (i = 0; i < calls; i++) {                       \
			int c = (call);                             \
			if (c == EOF)                               \
				break;                              \
			ones += (uint64_t)c;                        \
			twos += ones;                               \
		}                                                   \
		s->ones = ones;                                     \
		s->twos = twos;                                     \
		return i;                                           \
	}

READ_BYTES(read_raw, raw_read(s->fd, &b, 1) == 1 ? b : EOF)
READ_BYTES(read_fgetc, fgetc(s->file))
READ_BYTES(read_getc, getc(s->file))
READ_BYTES(read_getc_unlocked, getc_unlocked(s->file))
READ_BYTES(read_fread, fread(&b, 1, 1, s->file) == 1 ? b : EOF)
READ_BYTES(read_dfgetc, dfgetc(s->df))
READ_BYTES(read_dfread, dfread(&b, 1, 1, s->df) == 1 ? b : EOF)

/* READ_ELEMENTS is the same for calls that read n bytes into p each. */
#define READ_ELEMENTS(name, call)                                   \
	static int64_t name(struct stream *s, int64_t calls)        \
	{                                                           \
		size_t size = s->setup.size, count = s->setup.count;\
		unsigned char *p = s->element;                      \
		uint64_t ones = s->ones, twos = s->twos;            \
		int64_t i;                                          \
		for (i = 0; i < calls; i++) {                       \
			if (!(call))                                \
				break;                              \
			for (size_t k = 0; k < size * count; k++) { \
				ones += p[k];                       \
				twos += ones;                       \
			}                                           \
		}                                                   \
		s->ones = ones;                                     \
		s->twos = twos;                                     \
		return i;                                           \
	}

READ_ELEMENTS(elements_read, raw_read(s->fd, p, size * count) == size * count)
READ_ELEMENTS(elements_fread, fread(p, size, count, s->file) == count)
READ_ELEMENTS(elements_dfread, dfread(p, size, count, s->df) == count)

typedef int64_t loop(struct stream *s, int64_t calls);

/* by_method are the loops: of one byte a call, and of more where the call can. */
static const struct {
	loop *write, *read, *write_elements, *read_elements;
} by_method[] = {
	[RAW] = {write_raw, read_raw, elements_raw, elements_read},
	[FGETC] = {write_fputc, read_fgetc, NULL, NULL},
	[GETC] = {write_putc, read_getc, NULL, NULL},
	[GETC_UNLOCKED] = {write_putc_unlocked, read_getc_unlocked, NULL, NULL},
	[FREAD] = {write_fwrite, read_fread, elements_fwrite, elements_fread},
	[DFGETC] = {write_dfputc, read_dfgetc, NULL, NULL},
	[DFREAD] = {write_dfwrite, read_dfread, elements_dfwrite, elements_dfread},
};

/* run runs one of a method's two loops and returns 0 or an errno. */
static int run(struct stream *s, loop *bytes, loop *elements, int64_t calls, int64_t *made)
{
	*made = 0;
	loop *l = s->setup.size * s->setup.count == 1 ? bytes : elements;
	if (l == NULL)
		return ENOTSUP;
	errno = 0;
	*made = l(s, calls);
	return *made == calls ? 0 : errno;
}

int stream_write(struct stream *s, int64_t calls, int64_t *made)
{
	int err = run(s, by_method[s->setup.method].write, by_method[s->setup.method].write_elements, calls, made);
	return *made == calls || err != 0 ? err : EIO;
}

int stream_read(struct stream *s, int64_t calls, int64_t *made)
{
	int err = run(s, by_method[s->setup.method].read, by_method[s->setup.method].read_elements, calls, made);
	if (s->file != NULL && !ferror(s->file))
		return 0;
	if (s->df != NULL)
		return dferror(s->df);
	return err;
}

int copy_loop(int to, int from, unsigned char *buffer, size_t size, int64_t until, int64_t *copied)
{
	for (*copied = 0; *copied < until;) {
		ssize_t got = read(from, buffer, size);
		if (got == 0)
			return 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		size_t took = raw_write(to, buffer, (size_t)got);
		*copied += (int64_t)took;
		if (took < (size_t)got)
			return errno;
	}
	return 0;
}

int stream_flush(struct stream *s)
{
	if (s->file != NULL && fflush(s->file) != 0)
		return errno;
	if (s->df != NULL && dfflush(s->df) != 0)
		return errno;
	return 0;
}

static int open_raw(struct stream *s, const char *path)
{
	int flags = s->writing ? O_WRONLY | O_CREAT | (s->setup.keep ? 0 : O_TRUNC) : O_RDONLY;
	do
		s->fd = open(path, flags | O_CLOEXEC, 0666);
	while (s->fd < 0 && errno == EINTR);
	return s->fd < 0 ? errno : 0;
}

static int open_stdio(struct stream *s, const char *path)
{
	static const int modes[] = {[FULL] = _IOFBF, [LINE] = _IOLBF, [NONE] = _IONBF};
	if (s->writing && s->setup.keep) {
		int err = open_raw(s, path);
		if (err != 0)
			return err;
		s->file = fdopen(s->fd, "w");
	} else {
		s->file = fopen(path, s->writing ? "we" : "re");
	}
	if (s->file == NULL)
		return errno;
	s->fd = fileno(s->file);
	if (s->setup.mode == FULL && s->setup.buffer == 0)
		return 0;
	/* A size without a buffer is ignored by glibc. */
	if (s->setup.buffer > 0 && (s->buffer = malloc(s->setup.buffer)) == NULL)
		return ENOMEM;
	if (setvbuf(s->file, s->buffer, modes[s->setup.mode], s->setup.buffer) != 0)
		return EINVAL;
	return 0;
}

static int open_df(struct stream *s, const char *path)
{
	if (s->writing && s->setup.keep) {
		int err = open_raw(s, path);
		if (err != 0)
			return err;
		s->df = dfdopen(s->fd, "w");
	} else {
		s->df = dfopen(path, s->writing ? "w" : "r");
	}
	if (s->df == NULL)
		return errno;
	s->fd = dffileno(s->df);
	if (s->setup.mode == FULL && s->setup.buffer == 0)
		return 0;
	return dfsetbuf(s->df, s->setup.mode == NONE ? 0 : s->setup.buffer) != 0 ? errno : 0;
}

static int open_any(struct stream *s, const char *path)
{
	switch (s->setup.method) {
	case RAW: return open_raw(s, path);
	case DFGETC:
	case DFREAD: return open_df(s, path);
	default: return open_stdio(s, path);
	}
}

int stream_open(struct stream **into, const char *path, int writing, struct setup setup)
{
	size_t n = setup.size * setup.count + PERIOD;
	struct stream *s = calloc(1, sizeof *s);
	unsigned char *element = malloc(n);
	if (s == NULL || element == NULL) {
		free(s);
		free(element);
		return ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		element[i] = (unsigned char)(i % PERIOD);
	s->setup = setup;
	s->writing = writing;
	s->fd = -1;
	s->element = element;
	int err = open_any(s, path);
	if (err != 0) {
		stream_close(s);
		return err;
	}
	*into = s;
	return 0;
}

static int close_any(struct stream *s)
{
	if (s->file != NULL)
		return fclose(s->file);
	if (s->df != NULL)
		return dfclose(s->df);
	return s->fd < 0 ? 0 : close(s->fd);
}

int stream_close(struct stream *s)
{
	int err = close_any(s) != 0 ? errno : 0;
	free(s->buffer);
	free(s->element);
	free(s);
	return err;
}
