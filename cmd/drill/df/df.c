#define _POSIX_C_SOURCE 200809L

#include "df.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MOST is what one system call is given at most: some systems refuse more than INT_MAX. */
#define MOST ((size_t)1 << 30)

/* NARROW is the size below which a product of two needs no check. */
#define NARROW ((size_t)1 << (sizeof(size_t) * 4))

static int fail(DF *f, int err)
{
	f->error = err;
	errno = err;
	return -1;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static ssize_t read_fd(void *file, void *p, size_t n)
{
	return read((int)(intptr_t)file, p, n);
}

static ssize_t write_fd(void *file, const void *p, size_t n)
{
	return write((int)(intptr_t)file, p, n);
}

static int close_fd(void *file)
{
	return close((int)(intptr_t)file);
}

/* parse turns a mode into flags for open, or returns -1. */
static int parse(const char *mode)
{
	int flags;
	switch (*mode) {
	case 'r': flags = O_RDONLY; break;
	case 'w': flags = O_WRONLY | O_CREAT | O_TRUNC; break;
	case 'a': flags = O_WRONLY | O_CREAT | O_APPEND; break;
	default: errno = EINVAL; return -1;
	}
	for (mode++; *mode != '\0'; mode++) {
		if (*mode == 'x' && (flags & O_CREAT) != 0) {
			flags |= O_EXCL;
		} else if (*mode != 'b' && *mode != 'e') {
			errno = *mode == '+' ? ENOTSUP : EINVAL;
			return -1;
		}
	}
	return flags | O_CLOEXEC;
}

static DF *make(const struct df_io *io, int fd, int writing)
{
	DF *f = calloc(1, sizeof *f);
	if (f == NULL)
		return NULL;
	f->io = *io;
	f->fd = fd;
	f->writing = writing;
	if (dfsetbuf(f, DF_BUFFER) != 0) {
		free(f);
		errno = ENOMEM;
		return NULL;
	}
	return f;
}

static DF *make_fd(int fd, int writing)
{
	struct df_io io = {(void *)(intptr_t)fd, read_fd, write_fd, close_fd};
	return make(&io, fd, writing);
}

DF *dfopen(const char *path, const char *mode)
{
	int flags = parse(mode);
	if (flags < 0)
		return NULL;
	int fd;
	do
		fd = open(path, flags, 0666);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return NULL;
	DF *f = make_fd(fd, (flags & O_ACCMODE) == O_WRONLY);
	if (f == NULL) {
		close(fd);
		errno = ENOMEM;
	}
	return f;
}

DF *dfdopen(int fd, const char *mode)
{
	int flags = parse(mode);
	if (flags < 0)
		return NULL;
	int has = fcntl(fd, F_GETFL);
	if (has < 0)
		return NULL;
	if ((has & O_ACCMODE) != O_RDWR && (has & O_ACCMODE) != (flags & O_ACCMODE)) {
		errno = EINVAL;
		return NULL;
	}
	if ((flags & O_APPEND) != 0 && (has & O_APPEND) == 0 && fcntl(fd, F_SETFL, has | O_APPEND) < 0)
		return NULL;
	return make_fd(fd, (flags & O_ACCMODE) == O_WRONLY);
}

DF *dfopen_io(const struct df_io *io, const char *mode)
{
	int flags = parse(mode);
	if (flags < 0)
		return NULL;
	int writing = (flags & O_ACCMODE) == O_WRONLY;
	if (writing ? io->write == NULL : io->read == NULL) {
		errno = EINVAL;
		return NULL;
	}
	return make(io, -1, writing);
}

int dfsetbuf(DF *f, size_t size)
{
	if (f->rnext != f->rend || f->wnext != f->buffer)
		return fail(f, EBUSY);
	unsigned char *buffer = malloc(size > 0 ? size : 1);
	if (buffer == NULL)
		return fail(f, ENOMEM);
	free(f->buffer);
	f->buffer = f->rnext = f->rend = f->wnext = f->wend = buffer;
	if (f->writing)
		f->wend += size;
	f->size = size;
	return 0;
}

/* straight is how many of n bytes pass the buffer by: whole buffers full. */
static size_t straight(const DF *f, size_t n)
{
	return f->size > 1 ? n - n % f->size : n;
}

/* read_once returns how many bytes it read, 0 at the end of the file, or -1. */
static ssize_t read_once(DF *f, unsigned char *p, size_t n)
{
	ssize_t got;
	n = least(n, MOST);
	do
		got = f->io.read(f->io.file, p, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return fail(f, errno);
	if ((size_t)got > n)
		return fail(f, EIO);
	if (got == 0)
		f->eof = 1;
	return got;
}

/* write_all returns how many bytes were taken: fewer than n only after a failure. */
static size_t write_all(DF *f, const unsigned char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		size_t rest = least(n - done, MOST);
		ssize_t took = f->io.write(f->io.file, p + done, rest);
		if (took < 0 && errno == EINTR)
			continue;
		if (took <= 0 || (size_t)took > rest) {
			fail(f, took < 0 ? errno : EIO);
			break;
		}
		done += (size_t)took;
	}
	return done;
}

/* fill reads ahead; the buffer must be empty. */
static ssize_t fill(DF *f)
{
	ssize_t got = read_once(f, f->buffer, f->size);
	if (got > 0) {
		f->rnext = f->buffer;
		f->rend = f->buffer + got;
	}
	return got;
}

/* drain writes the buffer out; what can't be written moves to its front. */
static int drain(DF *f)
{
	size_t held = (size_t)(f->wnext - f->buffer);
	size_t took = write_all(f, f->buffer, held);
	f->wnext -= took;
	if (took == held)
		return 0;
	memmove(f->buffer, f->buffer + took, held - took);
	return -1;
}

/* get reads n bytes, or fewer at the end of the file or after a failure. */
static size_t get(DF *f, unsigned char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		size_t rest = n - done, ahead = (size_t)(f->rend - f->rnext);
		if (ahead > 0) {
			size_t take = least(rest, ahead);
			memcpy(p + done, f->rnext, take);
			f->rnext += take;
			done += take;
			continue;
		}
		if (f->eof)
			break;
		ssize_t got = rest < f->size ? fill(f) : read_once(f, p + done, straight(f, rest));
		if (got <= 0)
			break;
		if (rest >= f->size)
			done += (size_t)got;
	}
	return done;
}

/* put takes n bytes, or fewer after a failure. */
static size_t put(DF *f, const unsigned char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		size_t rest = n - done, room = (size_t)(f->wend - f->wnext);
		if (f->wnext == f->buffer && rest >= f->size) {
			size_t past = straight(f, rest), took = write_all(f, p + done, past);
			done += took;
			if (took < past)
				break;
		} else if (room == 0) {
			if (drain(f) != 0)
				break;
		} else {
			size_t take = least(rest, room);
			memcpy(f->wnext, p + done, take);
			f->wnext += take;
			done += take;
		}
	}
	return done;
}

/* overflows reports whether size * nmemb, size not 0, is more than a size_t holds. */
static int overflows(size_t size, size_t nmemb)
{
	return (size | nmemb) >= NARROW && nmemb > SIZE_MAX / size;
}

size_t dfread(void *p, size_t size, size_t nmemb, DF *f)
{
	if (size == 1 && nmemb == 1 && f->rnext < f->rend) {
		*(unsigned char *)p = *f->rnext++;
		return 1;
	}
	if (f->writing) {
		fail(f, EBADF);
		return 0;
	}
	if (size == 0 || nmemb == 0)
		return 0;
	if (overflows(size, nmemb)) {
		fail(f, EOVERFLOW);
		return 0;
	}
	size_t total = size * nmemb, got = get(f, p, total);
	return got == total ? nmemb : got / size;
}

size_t dfwrite(const void *p, size_t size, size_t nmemb, DF *f)
{
	if (size == 1 && nmemb == 1 && f->wnext < f->wend) {
		*f->wnext++ = *(const unsigned char *)p;
		return 1;
	}
	if (!f->writing) {
		fail(f, EBADF);
		return 0;
	}
	if (size == 0 || nmemb == 0)
		return 0;
	if (overflows(size, nmemb)) {
		fail(f, EOVERFLOW);
		return 0;
	}
	size_t total = size * nmemb, took = put(f, p, total);
	return took == total ? nmemb : took / size;
}

int df_underflow(DF *f)
{
	unsigned char c;
	return dfread(&c, 1, 1, f) == 1 ? c : DF_EOF;
}

int df_overflow(int c, DF *f)
{
	unsigned char byte = (unsigned char)c;
	return dfwrite(&byte, 1, 1, f) == 1 ? byte : DF_EOF;
}

int dfflush(DF *f)
{
	return f->writing ? drain(f) : fail(f, EBADF);
}

int dfclose(DF *f)
{
	int err = 0;
	if (f->writing && drain(f) != 0)
		err = errno;
	if (f->io.close != NULL && f->io.close(f->io.file) != 0 && err == 0)
		err = errno;
	free(f->buffer);
	free(f);
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

int dferror(const DF *f)
{
	return f->error;
}

int dfeof(const DF *f)
{
	return f->eof;
}

void dfclearerr(DF *f)
{
	f->error = f->eof = 0;
}

int dffileno(const DF *f)
{
	if (f->fd < 0)
		errno = EBADF;
	return f->fd;
}
