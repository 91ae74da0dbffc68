/*
 * Reading and writing a file of the pattern in many small calls: the loop is all
 * in C, and the same in all methods but for the call.
 *
 * The pattern is 0, 1, … PERIOD-1 and over again.
 */
#ifndef LOOP_H
#define LOOP_H

#include "df.h"

#include <stdint.h>
#include <stdio.h>

#define PERIOD 251

enum method { RAW, FGETC, GETC, GETC_UNLOCKED, FREAD, DFGETC, DFREAD };

enum mode { FULL, LINE, NONE };

struct setup {
	enum method method;
	enum mode mode;
	size_t buffer; /* 0 is the library's default */
	size_t size, count;
	int keep; /* writing does not make the file empty first */
};

/* A struct stream is a file open for one method. One thread at a time. */
struct stream {
	struct setup setup;
	int writing;
	int fd;
	FILE *file;
	DF *df;
	char *buffer;           /* setvbuf's */
	unsigned char *element; /* what a call of many bytes is given */
	size_t phase;           /* of the pattern, at the next byte to write */
	uint64_t ones, twos;    /* of the bytes read: their sum, and the sum of the sums */
};

/* These return 0 or an errno. stream_close frees the stream whatever it returns. */
int stream_open(struct stream **s, const char *path, int writing, struct setup setup);
int stream_write(struct stream *s, int64_t calls, int64_t *made);
int stream_read(struct stream *s, int64_t calls, int64_t *made);
int stream_flush(struct stream *s);
int stream_close(struct stream *s);

/*
 * copy_loop reads and writes, size bytes a call, until the end or until so many bytes are
 * copied. It returns 0 or an errno.
 */
int copy_loop(int to, int from, unsigned char *buffer, size_t size, int64_t until, int64_t *copied);

#endif
