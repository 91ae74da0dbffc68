/*
 * time read|write PATH N runs the student's functions a byte a call over N bytes of
 * the pattern 0, 1, … 250, and prints the nanoseconds of open, of all the calls and
 * of close; then how many calls succeeded, and the two sums of the bytes read.
 * It writes over what is in the file, as the other ways do that it stands beside.
 */
#define DRILL_HARNESS
#include "prelude.h"

#include "diy_buffering.h"

#include <stdarg.h>
#include <stdint.h>
#include <time.h>

ssize_t drill_read(int fd, void *p, size_t n) { return read(fd, p, n); }
ssize_t drill_write(int fd, const void *p, size_t n) { return write(fd, p, n); }
int drill_close(int fd) { return close(fd); }

int drill_open(const char *path, int flags, ...)
{
	return open(path, flags & ~O_TRUNC, 0666);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	int writing = strcmp(argv[1], "write") == 0;
	long long n = atoll(argv[3]), i;
	uint64_t ones = 0, twos = 0;
	unsigned char c = 0;
	int64_t begun = now();
	DIY_FILE *f = diy_fopen(argv[2], writing ? "w" : "r");
	if (f == NULL) {
		perror("diy_fopen");
		return 1;
	}
	int64_t opened = now();
	if (writing) {
		for (i = 0; i < n && diy_fwrite(&c, 1, 1, f) == 1; i++)
			c = c < 250 ? (unsigned char)(c + 1) : 0;
	} else {
		for (i = 0; i < n && diy_fread(&c, 1, 1, f) == 1; i++) {
			ones += c;
			twos += ones;
		}
	}
	int64_t called = now();
	int closing = diy_fclose(f);
	int64_t closed = now();
	if (closing != 0) {
		fprintf(stderr, "diy_fclose returned %d\n", closing);
		return 1;
	}
	printf("%lld %lld %lld %lld %llu %llu\n", (long long)(opened - begun), (long long)(called - opened),
	       (long long)(closed - called), i, (unsigned long long)ones, (unsigned long long)twos);
	return 0;
}
