/*
 * The contract of df.h, clause by clause. The argument is an empty directory. What
 * does not hold is printed with its line, and the exit code is 1.
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

static int broken;

#define CHECK(want, ...)                                              \
	do {                                                          \
		if (!(want) && broken++ < 50) {                       \
			printf("contract.c:%d: %s: ", __LINE__, #want); \
			printf(__VA_ARGS__);                          \
			printf(" (errno %s)\n", strerror(errno));     \
		}                                                     \
	} while (0)

#define LEN(a) (sizeof(a) / sizeof(a)[0])

static const size_t sizes[] = {0, 1, 2, 4095, 4096, 4097, 8191, 8192, 9973, 20011};
static const size_t elements[] = {1, 2, 3, 7, 251, 4095, 4096, 4097, 8192, 9999, 10000};
static const size_t buffers[] = {0, 1, 2, 7, 4096, 9973};
static unsigned char text[40000], back[40000];

static DF *open_disk(struct disk *d, const char *mode, size_t buffer)
{
	struct df_io io = disk_io(d);
	DF *f = dfopen_io(&io, mode);
	CHECK(f != NULL, "mode %s", mode);
	if (f == NULL)
		exit(1);
	CHECK(dfsetbuf(f, buffer) == 0, "buffer %zu", buffer);
	return f;
}

static void writes_all(size_t n, size_t element, size_t buffer, unsigned seed)
{
	struct disk d = {.seed = seed};
	DF *f = open_disk(&d, "w", buffer);
	size_t whole = n / element;
	CHECK(dfwrite(text, element, whole, f) == whole, "%zu of %zu, buffer %zu, seed %u", whole, element, buffer, seed);
	CHECK(dfwrite(text + whole * element, 1, n % element, f) == n % element, "the rest");
	CHECK(dferror(f) == 0 && !dfeof(f), "error %d", dferror(f));
	CHECK(dfclose(f) == 0, "n %zu", n);
	CHECK(d.len == n && (n == 0 || memcmp(d.bytes, text, n) == 0), "%zu bytes of %zu, element %zu, buffer %zu, seed %u", d.len, n, element, buffer, seed);
	CHECK(d.closes == 1, "%d closes", d.closes);
	disk_free(&d);
}

static void reads_all(size_t n, size_t element, size_t buffer, unsigned seed)
{
	struct disk d = {.seed = seed, .bytes = text, .len = n};
	DF *f = open_disk(&d, "r", buffer);
	memset(back, 0xee, sizeof back);
	size_t asked = n / element + 3;
	CHECK(dfread(back, element, asked, f) == n / element, "%zu elements of %zu, buffer %zu, seed %u", asked, element, buffer, seed);
	CHECK(memcmp(back, text, n) == 0, "%zu bytes, element %zu, buffer %zu, seed %u", n, element, buffer, seed);
	CHECK(back[n] == 0xee, "a byte after the %zuth", n);
	CHECK(dfeof(f) && dferror(f) == 0, "error %d", dferror(f));
	CHECK(dfread(back, 1, 1, f) == 0 && dfgetc(f) == DF_EOF, "after the end");
	CHECK(dfclose(f) == 0, "n %zu", n);
}

static void every_size(void)
{
	for (size_t i = 0; i < LEN(sizes); i++)
		for (size_t j = 0; j < LEN(elements); j++)
			for (size_t k = 0; k < LEN(buffers); k++)
				for (unsigned seed = 0; seed < 3; seed++) {
					writes_all(sizes[i], elements[j], buffers[k], seed);
					reads_all(sizes[i], elements[j], buffers[k], seed);
				}
}

static void every_element(void)
{
	for (size_t element = 1; element <= 10000; element++) {
		writes_all(20011, element, DF_BUFFER, (unsigned)element);
		reads_all(20011, element, DF_BUFFER, (unsigned)element);
	}
}

/* One byte a call takes ⌈n/buffer⌉ writes, and a read more than that to see the end. */
static void counts_calls(void)
{
	for (size_t i = 0; i < LEN(sizes); i++)
		for (size_t k = 0; k < LEN(buffers); k++) {
			size_t n = sizes[i], per = buffers[k] > 0 ? buffers[k] : 1;
			int want = (int)((n + per - 1) / per);
			struct disk d = {0};
			DF *f = open_disk(&d, "w", buffers[k]);
			for (size_t at = 0; at < n; at++)
				CHECK(dfputc(text[at], f) == text[at], "at %zu", at);
			CHECK(dfclose(f) == 0, "n %zu", n);
			CHECK(d.writes == want, "%d writes for %zu bytes, buffer %zu", d.writes, n, buffers[k]);
			CHECK(d.len == n && (n == 0 || memcmp(d.bytes, text, n) == 0), "%zu bytes", d.len);
			f = open_disk(&d, "r", buffers[k]);
			for (size_t at = 0; at < n; at++)
				CHECK(dfgetc(f) == text[at], "at %zu", at);
			CHECK(dfgetc(f) == DF_EOF && dfeof(f), "n %zu", n);
			CHECK(d.reads == want + 1, "%d reads for %zu bytes, buffer %zu", d.reads, n, buffers[k]);
			CHECK(dfclose(f) == 0, "n %zu", n);
			disk_free(&d);
		}
}

static void size_zero(void)
{
	struct disk d = {0};
	DF *f = open_disk(&d, "w", 16);
	CHECK(dfwrite(text, 0, 5, f) == 0 && dfwrite(text, 5, 0, f) == 0 && dfwrite(NULL, 0, 1, f) == 0, "writes");
	CHECK(dferror(f) == 0 && dfclose(f) == 0 && d.writes == 0, "%d writes", d.writes);
	f = open_disk(&d, "r", 16);
	CHECK(dfread(back, 0, 5, f) == 0 && dfread(back, 5, 0, f) == 0 && dfread(NULL, 1, 0, f) == 0, "reads");
	CHECK(dferror(f) == 0 && !dfeof(f) && dfclose(f) == 0 && d.reads == 0, "%d reads", d.reads);
}

static void overflow(void)
{
	size_t third = SIZE_MAX / 3 * 2 + 1; /* times 3 is 1 and a carry, where a size_t has an even number of bits */
	struct disk d = {0};
	DF *f = open_disk(&d, "w", 16);
	CHECK(dfwrite(text, SIZE_MAX, 2, f) == 0 && errno == EOVERFLOW, "SIZE_MAX * 2");
	CHECK(dfwrite(text, 3, third, f) == 0 && errno == EOVERFLOW, "3 * %zu = %zu", third, 3 * third);
	CHECK(dfwrite(text, third, 3, f) == 0 && dferror(f) == EOVERFLOW, "%zu * 3", third);
	CHECK(dfclose(f) == 0 && d.len == 0, "%zu bytes", d.len);
	f = open_disk(&d, "r", 16);
	CHECK(dfread(back, 3, third, f) == 0 && dferror(f) == EOVERFLOW, "3 * %zu", third);
	CHECK(dfclose(f) == 0 && d.reads == 0, "%d reads", d.reads);
}

static void wrong_way(void)
{
	struct disk d = {.bytes = text, .len = 10};
	DF *f = open_disk(&d, "r", 4);
	CHECK(dfgetc(f) == text[0], "first");
	CHECK(dfputc('x', f) == DF_EOF && errno == EBADF && dferror(f) == EBADF, "dfputc");
	dfclearerr(f);
	CHECK(dferror(f) == 0, "dfclearerr");
	CHECK(dfwrite("xy", 1, 2, f) == 0 && dferror(f) == EBADF, "dfwrite");
	CHECK(dfflush(f) == -1 && errno == EBADF, "dfflush");
	CHECK(dfgetc(f) == text[1], "it reads on");
	CHECK(dffileno(f) == -1 && errno == EBADF, "dffileno");
	CHECK(dfclose(f) == 0 && d.writes == 0, "%d writes", d.writes);
	struct disk e = {0};
	f = open_disk(&e, "w", 4);
	CHECK(dfputc('x', f) == 'x', "dfputc");
	CHECK(dfgetc(f) == DF_EOF && dferror(f) == EBADF && !dfeof(f), "dfgetc");
	CHECK(dfread(back, 1, 2, f) == 0 && errno == EBADF, "dfread");
	CHECK(dfclose(f) == 0 && e.len == 1 && e.reads == 0, "%zu bytes", e.len);
	disk_free(&e);
}

/* A disk that fills up loses nothing that was taken, and goes on when there is room. */
static void full_disk(void)
{
	for (size_t element = 1; element < 40; element++)
		for (size_t k = 0; k < LEN(buffers); k++) {
			struct disk d = {.room = 5003, .seed = (unsigned)element};
			DF *f = open_disk(&d, "w", buffers[k]);
			size_t whole = sizeof text / element, took = dfwrite(text, element, whole, f);
			CHECK(took < whole && dferror(f) == ENOSPC && errno == ENOSPC, "%zu of %zu", took, whole);
			CHECK(d.len == 5003 && took * element <= 5003 + buffers[k], "%zu bytes, %zu taken", d.len, took * element);
			d.room = 0;
			CHECK(dfflush(f) == 0, "room again");
			CHECK(d.len / element == took && memcmp(d.bytes, text, d.len) == 0, "%zu bytes, %zu of %zu taken", d.len, took, element);
			CHECK(dfwrite(text + d.len, 1, 100, f) == 100, "on");
			CHECK(dfclose(f) == 0 && memcmp(d.bytes, text, d.len) == 0, "%zu bytes", d.len);
			disk_free(&d);
		}
}

/* What a failed flush could not write stays, at any byte, and in its order. */
static void partial_flush(void)
{
	for (size_t room = 16; room < 24; room++) {
		struct disk d = {.room = room};
		DF *f = open_disk(&d, "w", 8);
		for (size_t i = 0; i < 24; i++)
			CHECK(dfputc(text[i], f) == text[i], "at %zu", i);
		CHECK(dfputc(text[24], f) == DF_EOF && errno == ENOSPC, "room %zu", room);
		CHECK(d.len == room && dfflush(f) == -1 && dferror(f) == ENOSPC, "%zu bytes", d.len);
		d.room++;
		CHECK(dfflush(f) == (room == 23 ? 0 : -1) && d.len == room + 1, "%zu bytes", d.len);
		CHECK(dfputc(text[24], f) == text[24], "room %zu", room);
		d.room = 0;
		CHECK(dfclose(f) == 0 && d.len == 25 && memcmp(d.bytes, text, 25) == 0, "%zu bytes", d.len);
		disk_free(&d);
	}
}

static void failed_read(void)
{
	for (size_t k = 0; k < LEN(buffers); k++) {
		struct disk d = {.bytes = text, .len = 30000, .seed = 9, .fail_read_at = 7, .fail_times = 2, .fail = EIO};
		DF *f = open_disk(&d, "r", buffers[k]);
		size_t got = dfread(back, 1, 30000, f);
		CHECK(got < 30000 && dferror(f) == EIO && errno == EIO && !dfeof(f), "%zu bytes, buffer %zu", got, buffers[k]);
		CHECK(dfgetc(f) == DF_EOF, "twice");
		dfclearerr(f);
		CHECK(got + dfread(back + got, 1, 30000 - got, f) == 30000, "%zu bytes, buffer %zu", got, buffers[k]);
		CHECK(memcmp(back, text, 30000) == 0 && dferror(f) == 0, "buffer %zu", buffers[k]);
		CHECK(dfclose(f) == 0, "buffer %zu", buffers[k]);
	}
}

/* dfclose tells what failed first, closes in any case, and hides no failed flush. */
static void failed_close(void)
{
	static const struct {
		int flush, close, want;
	} of[] = {{0, 0, 0}, {EIO, 0, EIO}, {0, EDQUOT, EDQUOT}, {ENOSPC, EIO, ENOSPC}};
	for (size_t i = 0; i < LEN(of); i++) {
		struct disk d = {.fail_write_at = of[i].flush != 0, .fail_times = 1, .fail = of[i].flush, .fail_close = of[i].close};
		DF *f = open_disk(&d, "w", 16);
		CHECK(dfputc('x', f) == 'x', "taken");
		errno = 0;
		CHECK(dfclose(f) == (of[i].want != 0 ? -1 : 0) && errno == of[i].want, "want %d", of[i].want);
		CHECK(d.closes == 1, "%d closes", d.closes);
		disk_free(&d);
	}
}

static void lying_calls(void)
{
	static const int lies[] = {-2, 100};
	for (size_t i = 0; i < LEN(lies); i++) {
		struct disk d = {.lie = lies[i]};
		DF *f = open_disk(&d, "w", 4);
		CHECK(dfwrite("0123456789", 1, 10, f) == 0 && dferror(f) == EIO, "lie %d", lies[i]);
		CHECK(dfputc('x', f) == 'x' && dfclose(f) == -1 && errno == EIO, "lie %d", lies[i]);
	}
	struct disk d = {.lie = 100};
	DF *f = open_disk(&d, "r", 4);
	CHECK(dfgetc(f) == DF_EOF && dferror(f) == EIO && !dfeof(f), "a read of more than asked");
	CHECK(dfclose(f) == 0, "close");
}

static void end_of_file_is_an_end(void)
{
	struct disk d = {.bytes = text, .len = 3};
	DF *f = open_disk(&d, "r", 16);
	CHECK(dfread(back, 2, 2, f) == 1 && dfeof(f) && back[2] == text[2], "three bytes are one element of two");
	d.len = 5; /* the file grows */
	int reads = d.reads;
	CHECK(dfgetc(f) == DF_EOF && dfread(back, 1, 100, f) == 0 && d.reads == reads, "%d reads", d.reads);
	dfclearerr(f);
	CHECK(!dfeof(f) && dfgetc(f) == text[3] && dfgetc(f) == text[4] && dfgetc(f) == DF_EOF, "on");
	CHECK(dfclose(f) == 0, "close");
}

static void buffer_in_use(void)
{
	struct disk d = {.bytes = text, .len = 100};
	DF *f = open_disk(&d, "r", 16);
	CHECK(dfgetc(f) == text[0], "first");
	CHECK(dfsetbuf(f, 32) == -1 && errno == EBUSY, "15 bytes ahead");
	CHECK(dfread(back, 1, 15, f) == 15 && dfsetbuf(f, 32) == 0 && dfgetc(f) == text[16], "none ahead");
	CHECK(dfclose(f) == 0, "close");
	struct disk e = {0};
	f = open_disk(&e, "w", 16);
	CHECK(dfputc('a', f) == 'a' && dfsetbuf(f, 0) == -1 && errno == EBUSY, "a byte in it");
	CHECK(dfflush(f) == 0 && dfsetbuf(f, 0) == 0 && dfputc('b', f) == 'b' && e.len == 2, "%zu bytes", e.len);
	CHECK(dfclose(f) == 0 && memcmp(e.bytes, "ab", 2) == 0, "close");
	disk_free(&e);
}

static void modes(void)
{
	static const struct {
		const char *mode;
		int err;
	} of[] = {{"", EINVAL}, {"z", EINVAL}, {"rx", EINVAL}, {"wq", EINVAL}, {"r+", ENOTSUP}, {"wb+", ENOTSUP}, {"a+", ENOTSUP}, {"wx", EEXIST}, {"ax", EEXIST}};
	CHECK(dfclose(dfopen("modes", "wx")) == 0, "wx makes it");
	for (size_t i = 0; i < LEN(of); i++)
		CHECK(dfopen("modes", of[i].mode) == NULL && errno == of[i].err, "mode %s", of[i].mode);
	CHECK(dfopen("none", "r") == NULL && errno == ENOENT, "no file");
	CHECK(dfopen(".", "w") == NULL && errno == EISDIR, "a directory");
	struct df_io nothing = {0};
	CHECK(dfopen_io(&nothing, "r") == NULL && errno == EINVAL, "no read");
	CHECK(dfopen_io(&nothing, "w") == NULL && errno == EINVAL, "no write");
	CHECK(dfopen_io(&nothing, "+") == NULL && errno == EINVAL, "no mode");
}

static void real_files(void)
{
	static const struct {
		const char *mode, *more, *want;
	} of[] = {{"w", "one", "one"}, {"a", "two", "onetwo"}, {"wb", "3", "3"}, {"ae", "4", "34"}};
	for (size_t i = 0; i < LEN(of); i++) {
		DF *f = dfopen("real", of[i].mode);
		size_t n = strlen(of[i].more), all = strlen(of[i].want);
		CHECK(dffileno(f) >= 0 && dfwrite(of[i].more, n, 1, f) == 1 && dfclose(f) == 0, "%s", of[i].mode);
		f = dfopen("real", "rb");
		CHECK(dfread(back, 1, 100, f) == all && memcmp(back, of[i].want, all) == 0, "%s: want %s", of[i].mode, of[i].want);
		CHECK(dfclose(f) == 0, "close");
	}
}

static void descriptors(void)
{
	int fd = open("real", O_RDONLY | O_CREAT, 0666);
	CHECK(dfdopen(fd, "w") == NULL && errno == EINVAL, "read only");
	CHECK(dfdopen(fd, "r+") == NULL && errno == ENOTSUP, "update");
	CHECK(fcntl(fd, F_GETFD) >= 0, "a refused descriptor stays open");
	close(fd);
	CHECK(dfdopen(fd, "r") == NULL && errno == EBADF, "closed");
	fd = open("real", O_RDWR | O_TRUNC);
	DF *f = dfdopen(fd, "a");
	CHECK(f != NULL && (fcntl(fd, F_GETFL) & O_APPEND) != 0 && dffileno(f) == fd, "append");
	CHECK(dfputc('x', f) == 'x' && dfclose(f) == 0 && fcntl(fd, F_GETFD) < 0, "closed by dfclose");
}

/* A pipe gives what is in it: dfread waits for the rest. */
static void pipes(void)
{
	int ends[2];
	CHECK(pipe(ends) == 0, "pipe");
	DF *in = dfdopen(ends[0], "r"), *out = dfdopen(ends[1], "w");
	CHECK(dfsetbuf(out, 10) == 0, "dfsetbuf");
	for (size_t at = 0; at < 1000; at += 50)
		CHECK(dfwrite(text + at, 25, 2, out) == 2, "at %zu", at);
	CHECK(dfclose(out) == 0, "close");
	CHECK(dfread(back, 300, 4, in) == 3 && dfeof(in) && memcmp(back, text, 1000) == 0, "1000 bytes are three elements of 300");
	CHECK(dfclose(in) == 0, "close");
}

static void full_device(void)
{
	DF *f = dfopen("/dev/full", "w");
	if (f == NULL)
		return; /* not on this system */
	CHECK(dfputc('x', f) == 'x' && dfflush(f) == -1 && errno == ENOSPC, "flush");
	CHECK(dfclose(f) == -1 && errno == ENOSPC, "close");
}

#define STREAMS 200

/* Streams have nothing in common: each gets its own bytes, and its own failure. */
static void many_streams(void)
{
	DF *f[STREAMS];
	char name[32];
	for (int i = 0; i < STREAMS; i++) {
		snprintf(name, sizeof name, "many%d", i);
		f[i] = dfopen(name, "w");
		CHECK(f[i] != NULL && dfsetbuf(f[i], (size_t)(i % 40)) == 0, "stream %d", i);
	}
	for (int at = 0; at < 100; at++)
		for (int i = 0; i < STREAMS; i++)
			CHECK(dfputc((i + at) % 256, f[i]) != DF_EOF, "stream %d at %d", i, at);
	CHECK(dfgetc(f[3]) == DF_EOF && dferror(f[3]) != 0 && dferror(f[2]) == 0 && dferror(f[4]) == 0, "a failure of one");
	for (int i = 0; i < STREAMS; i++)
		CHECK(dfclose(f[i]) == 0, "stream %d", i);
	for (int i = 0; i < STREAMS; i++) {
		snprintf(name, sizeof name, "many%d", i);
		f[i] = dfopen(name, "r");
		CHECK(f[i] != NULL, "stream %d", i);
	}
	for (int at = 0; at < 100; at++)
		for (int i = 0; i < STREAMS; i++)
			CHECK(dfgetc(f[i]) == (i + at) % 256, "stream %d at %d", i, at);
	for (int i = 0; i < STREAMS; i++)
		CHECK(dfgetc(f[i]) == DF_EOF && dfclose(f[i]) == 0, "stream %d", i);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) != 0) {
		fprintf(stderr, "usage: contract directory\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (unsigned char)(i % 251 + i / 251);
	every_size();
	every_element();
	counts_calls();
	size_zero();
	overflow();
	wrong_way();
	full_disk();
	partial_flush();
	failed_read();
	failed_close();
	lying_calls();
	end_of_file_is_an_end();
	buffer_in_use();
	modes();
	real_files();
	descriptors();
	pipes();
	full_device();
	many_streams();
	printf("%d clauses broken\n", broken);
	return broken != 0;
}
