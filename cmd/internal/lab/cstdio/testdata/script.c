/*
 * Runs scripts of calls by df and by stdio, each on a file of its own, and tells
 * for both what the calls returned, what was read and what the file had at the end.
 * The argument is an empty directory.
 *
 * Standard input: for each script its length (four bytes, the least first) and its
 * bytes. Standard output: for each script two traces, df's and stdio's, each after
 * its length.
 *
 * A script is: 'r', 'w' or 'a'; a seed, not 0 for df with short and interrupted
 * system calls; the buffer's size as a two-byte number, 0 for none; the file's first
 * size as another. Then calls, each a letter and its numbers. At its end the stream
 * is closed. Any bytes are a script.
 *   c          fgetc or fputc
 *   e s s n    fread or fwrite of n elements of s bytes (any other letter is e, too)
 *   x          the call of c that the stream is not open for
 *   f          fflush, of a stream for writing
 *   k          clearerr
 */
#define _POSIX_C_SOURCE 200809L

#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bytes {
	unsigned char *p;
	size_t len, holds;
};

static void add(struct bytes *b, const void *p, size_t n)
{
	if (b->len + n > b->holds) {
		b->holds = 2 * (b->len + n);
		b->p = realloc(b->p, b->holds);
		if (b->p == NULL)
			abort();
	}
	if (n > 0)
		memcpy(b->p + b->len, p, n);
	b->len += n;
}

/* A script is read to its end; then all its numbers are 0. */
struct script {
	const unsigned char *next, *end;
};

static unsigned number(struct script *s, int bytes)
{
	unsigned n = 0;
	for (int i = 0; i < bytes && s->next < s->end; i++)
		n |= (unsigned)*s->next++ << (8 * i);
	return n;
}

/* A rough is a descriptor whose calls are short and interrupted. */
struct rough {
	int fd;
	unsigned seed;
};

static ssize_t rough_read(void *file, void *p, size_t n)
{
	struct rough *r = file;
	ssize_t take = disturb(&r->seed, n);
	return take < 0 ? take : read(r->fd, p, (size_t)take);
}

static ssize_t rough_write(void *file, const void *p, size_t n)
{
	struct rough *r = file;
	ssize_t take = disturb(&r->seed, n);
	return take < 0 ? take : write(r->fd, p, (size_t)take);
}

static int rough_close(void *file)
{
	struct rough *r = file;
	return close(r->fd);
}

static DF *open_df(const char *name, const char *mode, struct rough *r, size_t buffer)
{
	DF *f = dfopen(name, mode);
	if (f != NULL && r->seed != 0) {
		r->fd = dup(dffileno(f));
		dfclose(f);
		struct df_io io = {r, rough_read, rough_write, rough_close};
		f = dfopen_io(&io, mode);
	}
	if (f == NULL || dfsetbuf(f, buffer) != 0)
		abort();
	return f;
}

static FILE *open_stdio(const char *name, const char *mode, char *buffer, size_t size)
{
	FILE *f = fopen(name, mode);
	if (f == NULL || setvbuf(f, buffer, size > 0 ? _IOFBF : _IONBF, size) != 0)
		abort();
	return f;
}

/* seen adds what the file has. */
static void seen(struct bytes *trace, const char *name)
{
	unsigned char block[65536];
	int fd = open(name, O_RDONLY);
	ssize_t n;
	while ((n = read(fd, block, sizeof block)) > 0)
		add(trace, block, (size_t)n);
	close(fd);
}

static void begin(const char *name, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	unsigned char *p = malloc(len + 1);
	for (size_t i = 0; i < len; i++)
		p[i] = (unsigned char)(i * 7 + i / 256);
	if (write(fd, p, len) != (ssize_t)len)
		abort();
	free(p);
	close(fd);
}

/* An either is a stream of df, or one of stdio. */
struct either {
	DF *df;
	FILE *file;
};

/* say adds a line about a call. */
static void say(struct bytes *trace, const char *call, long long returned, struct either f)
{
	int error = f.df != NULL ? dferror(f.df) != 0 : ferror(f.file) != 0;
	int eof = f.df != NULL ? dfeof(f.df) : feof(f.file);
	char line[100];
	int n = snprintf(line, sizeof line, "\n%s %lld%s%s ", call, returned, error ? " error" : "", eof ? " eof" : "");
	add(trace, line, (size_t)n);
}

static long long one(struct either f, int reads, unsigned c)
{
	if (reads)
		return f.df != NULL ? dfgetc(f.df) : fgetc(f.file);
	return f.df != NULL ? dfputc((int)c, f.df) : fputc((int)c, f.file);
}

static size_t some(struct either f, int reads, void *p, size_t size, size_t n)
{
	if (reads)
		return f.df != NULL ? dfread(p, size, n, f.df) : fread(p, size, n, f.file);
	return f.df != NULL ? dfwrite(p, size, n, f.df) : fwrite(p, size, n, f.file);
}

static int flush(struct either f)
{
	return f.df != NULL ? dfflush(f.df) : fflush(f.file);
}

static void forget(struct either f)
{
	if (f.df != NULL)
		dfclearerr(f.df);
	else
		clearerr(f.file);
}

/* A job is a script under way. */
struct job {
	struct script script;
	struct either f;
	const char *name;
	int reads;
	unsigned next; /* byte to write */
	struct bytes *trace;
};

static unsigned after(unsigned c)
{
	return c * 31 % 251;
}

/* elements reads or writes some, and traces what is in the memory then. */
static void elements(struct job *j)
{
	size_t size = number(&j->script, 2) % 10001, n = number(&j->script, 1);
	if (size * n > 30000)
		n = 3;
	struct bytes data = {calloc(size * n + 1, 1), size * n, 0};
	for (size_t i = 0; i < data.len && !j->reads; i++)
		data.p[i] = (unsigned char)(j->next = after(j->next));
	size_t done = some(j->f, j->reads, data.p, size, n);
	say(j->trace, "e", (long long)done, j->f);
	if (j->reads)
		add(j->trace, data.p, data.len);
	free(data.p);
}

/* step runs a script's next call, and returns 0 if there is none. */
static int step(struct job *j)
{
	if (j->script.next == j->script.end)
		return 0;
	char call[2] = {(char)number(&j->script, 1), 0};
	switch (*call) {
	case 'c':
	case 'x':
		j->next = after(j->next);
		say(j->trace, call, one(j->f, j->reads == (*call == 'c'), j->next), j->f);
		return 1;
	case 'f':
		if (!j->reads)
			say(j->trace, call, flush(j->f), j->f);
		seen(j->trace, j->name);
		return 1;
	case 'k':
		forget(j->f);
		say(j->trace, call, 0, j->f);
		return 1;
	default:
		elements(j);
		return 1;
	}
}

/* run runs a script by df if rough is given, or by stdio. */
static void run(struct script s, struct rough *r, struct bytes *trace)
{
	unsigned letter = number(&s, 1), seed = number(&s, 1);
	const char *mode = (const char *[]){"r", "a", "w"}[letter % 3]; /* as 'r', 'a' and 'w' are in ASCII */
	size_t size = number(&s, 2), len = number(&s, 2);
	struct job j = {.script = s, .name = r != NULL ? "df" : "stdio", .reads = *mode == 'r', .next = 1, .trace = trace};
	begin(j.name, len);
	char *buffer = malloc(size + 1);
	if (r != NULL) {
		r->seed = seed;
		j.f.df = open_df(j.name, mode, r, size);
	} else {
		j.f.file = open_stdio(j.name, mode, buffer, size);
	}
	while (step(&j))
		;
	int closed = j.f.df != NULL ? dfclose(j.f.df) : fclose(j.f.file);
	add(trace, closed == 0 ? "\nclosed " : "\nfailed ", 8);
	seen(trace, j.name);
	free(buffer);
}

static void send(const struct bytes *b)
{
	unsigned char len[4];
	for (int i = 0; i < 4; i++)
		len[i] = (unsigned char)(b->len >> (8 * i));
	fwrite(len, 1, 4, stdout);
	fwrite(b->p, 1, b->len, stdout);
}

/* next reads a script, or returns 0 at the end. */
static int next(struct bytes *script)
{
	unsigned char len[4];
	if (fread(len, 1, 4, stdin) != 4)
		return 0;
	script->len = (size_t)len[0] | (size_t)len[1] << 8 | (size_t)len[2] << 16 | (size_t)len[3] << 24;
	script->p = malloc(script->len + 1);
	return fread(script->p, 1, script->len, stdin) == script->len;
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) != 0) {
		fprintf(stderr, "usage: script directory\n");
		return 2;
	}
	struct bytes script;
	while (next(&script)) {
		struct script s = {script.p, script.p + script.len};
		struct rough rough = {0};
		struct bytes traces[2] = {0};
		run(s, &rough, &traces[0]);
		run(s, NULL, &traces[1]);
		for (int i = 0; i < 2; i++) {
			send(&traces[i]);
			free(traces[i].p);
		}
		fflush(stdout);
		free(script.p);
	}
	return 0;
}
