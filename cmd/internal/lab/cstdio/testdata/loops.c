/*
 * Runs every loop of loop.c, for a build with sanitizers to watch. The argument is
 * an empty directory. What is wrong is printed, and the exit code is 1.
 */
#define _POSIX_C_SOURCE 200809L

#include "loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int wrong;

static void check(int holds, const char *what, struct setup s)
{
	if (!holds && wrong++ < 50)
		printf("%s: method %d mode %d buffer %zu size %zu count %zu\n", what, (int)s.method, (int)s.mode, s.buffer, s.size, s.count);
}

static void writes(struct setup setup, int64_t calls)
{
	struct stream *s;
	int64_t made;
	if (stream_open(&s, "file", 1, setup) != 0) {
		check(0, "open to write", setup);
		return;
	}
	check(stream_write(s, calls / 2, &made) == 0 && made == calls / 2, "write", setup);
	check(stream_flush(s) == 0, "flush", setup);
	check(stream_write(s, calls - calls / 2, &made) == 0 && made == calls - calls / 2, "write on", setup);
	check(stream_close(s) == 0, "close", setup);
}

static void reads(struct setup setup, int64_t calls)
{
	struct stream *s;
	int64_t made;
	if (stream_open(&s, "file", 0, setup) != 0) {
		check(0, "open to read", setup);
		return;
	}
	check(stream_read(s, calls + 3, &made) == 0 && made == calls, "read", setup);
	uint64_t ones = 0, twos = 0;
	for (size_t i = 0; i < (size_t)calls * setup.size * setup.count; i++) {
		ones += i % PERIOD;
		twos += ones;
	}
	check(s->ones == ones && s->twos == twos, "sum", setup);
	check(stream_close(s) == 0, "close", setup);
}

static void refused(void)
{
	struct stream *s;
	int64_t made;
	struct setup setup = {DFREAD, FULL, 0, 1, 1, 0};
	check(stream_open(&s, "none/file", 1, setup) == ENOENT, "no directory", setup);
	check(stream_open(&s, ".", 0, setup) == 0, "a directory", setup);
	check(stream_read(s, 1, &made) == EISDIR && made == 0, "read of a directory", setup);
	check(stream_close(s) == 0, "close", setup);
	setup = (struct setup){FGETC, FULL, 0, 2, 1, 0};
	check(stream_open(&s, "file", 1, setup) == 0, "open", setup);
	check(stream_write(s, 1, &made) == ENOTSUP && made == 0, "two bytes by fputc", setup);
	check(stream_close(s) == 0, "close", setup);
}

int main(int argc, char **argv)
{
	static const size_t buffers[] = {0, 1, 100, 4096}, sizes[] = {1, 2, 251, 4097};
	if (argc != 2 || chdir(argv[1]) != 0) {
		fprintf(stderr, "usage: loops directory\n");
		return 2;
	}
	for (int method = RAW; method <= DFREAD; method++)
		for (int mode = FULL; mode <= NONE; mode++)
			for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
				for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
					for (size_t count = 1; count <= 3; count += 2) {
						int one = method != RAW && method != FREAD && method != DFREAD;
						if ((one && sizes[z] * count > 1) || (mode == NONE && buffers[b] > 0))
							continue;
						struct setup s = {(enum method)method, (enum mode)mode, buffers[b], sizes[z], count, 0};
						int64_t calls = sizes[z] == 1 ? 5003 : 11;
						writes(s, calls);
						reads(s, calls);
						if (b == 0 && z == 0 && remove("file") == 0) {
							s.keep = 1;
							writes(s, calls);
						}
					}
	refused();
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
