/*
 * df: buffered reading and writing of files one byte or one element at a time,
 * as stdio does it, without stdio's locks.
 *
 * A stream belongs to one thread at a time; different streams have nothing in
 * common. A stream reads or writes: there is no update mode. It knows nothing of
 * characters, lines, positions or formats.
 *
 * A call that fails sets errno, and dferror returns it until dfclearerr. An errno
 * is the system call's own, or
 *   EINVAL     a mode that is none, or one that the descriptor is not open for
 *   ENOTSUP    a mode with '+'
 *   EBADF      reading from a stream for writing, or the other way round
 *   EOVERFLOW  size * nmemb is more than a size_t holds
 *   EBUSY      dfsetbuf on a stream that holds bytes
 *   EIO        also: a system call took no byte, or more than it was given
 * A system call that a signal interrupts (EINTR) or that does a part of the work
 * is continued at the next byte; no call fails for that.
 */
#ifndef DF_H
#define DF_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DF_BUFFER is the size of a stream's buffer in bytes unless dfsetbuf sets another. */
#define DF_BUFFER 4096

/* DF_EOF is what dfgetc and dfputc return instead of a byte. */
#define DF_EOF (-1)

/*
 * A struct df_io is where a stream's bytes come from or go to. Each function is
 * given file, and returns and sets errno as the system call of its name does. The
 * stream keeps a copy of the struct. read may be NULL in a stream for writing,
 * write in one for reading, and close where there is nothing to close.
 */
struct df_io {
	void *file;
	ssize_t (*read)(void *file, void *p, size_t n);
	ssize_t (*write)(void *file, const void *p, size_t n);
	int (*close)(void *file);
};

/* A DF is a stream. Its fields are for the inline functions below only. */
typedef struct DF DF;

struct DF {
	unsigned char *rnext, *rend; /* read ahead and not yet taken */
	unsigned char *wnext, *wend; /* the room for bytes to write; equal in a stream for reading */
	unsigned char *buffer;       /* what is to be written is buffer…wnext */
	size_t size;
	struct df_io io;
	int fd;
	int error;
	int writing;
	int eof;
};

/*
 * dfopen opens a file: mode is "r" to read it, "w" to make it or to make it empty,
 * "a" to make it or to write at its end; "x" after "w" or "a" fails with EEXIST if
 * it is there. "b" and "e" may follow and change nothing: all bytes are bytes, and
 * exec closes the descriptor in any case. It returns NULL if it fails.
 */
DF *dfopen(const char *path, const char *mode);

/*
 * dfdopen makes a stream of a descriptor, which dfclose will close. With "w" the
 * file keeps its bytes. If it fails, it returns NULL and the descriptor is as it was.
 */
DF *dfdopen(int fd, const char *mode);

/* dfopen_io makes a stream of anything: mode is "r", "w" or "a". */
DF *dfopen_io(const struct df_io *io, const char *mode);

/*
 * dfsetbuf gives the stream a buffer of size bytes; 0 is none, so that each call
 * is a system call at once. Only while the stream holds no bytes. It returns 0, or
 * -1 and the old buffer stays.
 */
int dfsetbuf(DF *f, size_t size);

/*
 * dfread reads nmemb elements of size bytes each into p, waiting for them where it
 * has to, and returns how many whole ones it read: fewer only at the end of the
 * file (dfeof) or after a failure (dferror). Then the bytes of an incomplete
 * element are in p too, and gone from the stream. The end of the file is an end
 * until dfclearerr; a failed read is tried again by the next call. 0 if size or
 * nmemb is 0, which is no failure.
 */
size_t dfread(void *p, size_t size, size_t nmemb, DF *f);

/*
 * dfwrite takes nmemb elements of size bytes each from p and returns how many whole
 * ones the stream took: fewer only after a failure. Taken bytes are in the buffer
 * or were handed to write; none is lost or written twice by a failure, and any later
 * dfwrite, dfputc, dfflush or dfclose goes on with the byte that was due. After a
 * failure a part of the next element may be taken too. 0 if size or nmemb is 0,
 * which is no failure.
 */
size_t dfwrite(const void *p, size_t size, size_t nmemb, DF *f);

/*
 * dfflush hands all that the stream took to write. It returns 0, or -1 after a
 * failure: then the rest stays in the buffer for the next attempt.
 */
int dfflush(DF *f);

/*
 * dfclose flushes, closes and frees the stream, whatever fails on the way. It
 * returns 0, or -1 with the errno of what failed first; then bytes that were taken
 * may be lost (dfflush before it reports the error while they are not).
 */
int dfclose(DF *f);

/* dferror returns the errno of the latest failure, or 0 if there was none since dfclearerr. */
int dferror(const DF *f);

/* dfeof reports whether a read met the end of the file since dfclearerr. */
int dfeof(const DF *f);

/* dfclearerr forgets the end of the file and the failure. */
void dfclearerr(DF *f);

/* dffileno returns the descriptor, or -1 and EBADF where there is none (dfopen_io). */
int dffileno(const DF *f);

/* df_underflow and df_overflow are dfgetc and dfputc where the buffer does not do. */
int df_underflow(DF *f);
int df_overflow(int c, DF *f);

/* dfgetc returns the next byte, or DF_EOF where dfread would have read none. */
static inline int dfgetc(DF *f)
{
	return f->rnext < f->rend ? *f->rnext++ : df_underflow(f);
}

/* dfputc takes c as one byte and returns it, or DF_EOF where dfwrite would take none. */
static inline int dfputc(int c, DF *f)
{
	return f->wnext < f->wend ? (*f->wnext++ = (unsigned char)c) : df_overflow(c, f);
}

#ifdef __cplusplus
}
#endif

#endif
