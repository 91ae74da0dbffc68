/*
 * check DIR FROM runs the cases from number FROM on against a student's functions,
 * with files in the empty directory DIR. It prints "case N NAME" before each, and ends
 * at the first that is wrong with a line "wrong TEXT" and exit code 1.
 */
#define DRILL_HARNESS
#include "prelude.h"

#include "diy_buffering.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>

/* What the system calls do, and how many there were since calm(). */
static struct {
	size_t most;        /* bytes that a call takes at most; 0 is no limit */
	int interrupt;      /* every second call fails with EINTR */
	long fail_at;       /* the number of the first call that fails with fail; 0 is none */
	long fail_times;    /* so many in a row */
	int fail;
	long reads, writes, closes, failed, idle;
} io;

static const char *directory;

static void wrong(const char *form, ...)
{
	va_list list;
	va_start(list, form);
	printf("wrong ");
	vprintf(form, list);
	printf("\n");
	va_end(list);
	fflush(stdout);
	_exit(1);
}

static void calm(void)
{
	memset(&io, 0, sizeof io);
}

/* disturbed reports whether the call with this number fails, and sets errno. */
static int disturbed(long number)
{
	if (io.interrupt && number % 2 == 1) {
		errno = EINTR;
		return 1;
	}
	if (io.fail_at != 0 && number >= io.fail_at && number < io.fail_at + io.fail_times) {
		if (++io.failed > 1000)
			wrong("a system call fails with \"%s\", and your code makes it again and again: it never ends", strerror(io.fail));
		errno = io.fail;
		return 1;
	}
	return 0;
}

ssize_t drill_read(int fd, void *p, size_t n)
{
	if (disturbed(++io.reads))
		return -1;
	if (io.most != 0 && n > io.most)
		n = io.most;
	ssize_t got = read(fd, p, n);
	if (got == 0 && ++io.idle > 1000)
		wrong("read(2) returns 0, which is the end of the file, and your code calls it again and again: it never ends");
	return got;
}

ssize_t drill_write(int fd, const void *p, size_t n)
{
	if (disturbed(++io.writes))
		return -1;
	if (n == 0 && ++io.idle > 1000)
		wrong("your code calls write(2) for 0 bytes again and again: it never ends");
	if (io.most != 0 && n > io.most)
		n = io.most;
	return write(fd, p, n);
}

int drill_open(const char *path, int flags, ...)
{
	return open(path, flags, 0666);
}

int drill_close(int fd)
{
	io.closes++;
	return close(fd);
}

#define MOST 40000

static unsigned char text[MOST], back[MOST];

static const char *place(const char *name)
{
	static char paths[2][4096];
	static int turn;
	char *path = paths[turn = 1 - turn];
	snprintf(path, sizeof paths[0], "%s/%s", directory, name);
	return path;
}

static DIY_FILE *opened(const char *name, const char *mode)
{
	DIY_FILE *f = diy_fopen(place(name), mode);
	if (f == NULL)
		wrong("diy_fopen(\"%s\", \"%s\") returned NULL: %s", name, mode, strerror(errno));
	return f;
}

/* make makes a file of the first n bytes of text, without the student's code. */
static void make(const char *name, size_t n)
{
	FILE *f = fopen(place(name), "w");
	if (f == NULL || fwrite(text, 1, n, f) != n || fclose(f) != 0) {
		perror("the checker's own file");
		_exit(2);
	}
}

/* holds checks that the file is the first n bytes of want. */
static void holds(const char *name, const unsigned char *want, size_t n, const char *advice)
{
	FILE *f = fopen(place(name), "r");
	if (f == NULL)
		wrong("the file %s is not there: %s", name, strerror(errno));
	size_t got = fread(back, 1, MOST, f), same = 0;
	fclose(f);
	while (same < got && same < n && back[same] == want[same])
		same++;
	if (same == n && got == n)
		return;
	if (same < got && same < n)
		wrong("byte %zu of the file is %d, and %d was written there; the file has %zu bytes of %zu: %s", same, back[same], want[same], got, n, advice);
	if (got < n)
		wrong("the file has %zu bytes, and %zu were written: the last %zu are lost: %s", got, n, n - got, advice);
	wrong("the file has %zu bytes, and only %zu were written: %s", got, n, advice);
}

static void put(DIY_FILE *f, const unsigned char *p, size_t size, size_t nmemb)
{
	size_t took = diy_fwrite(p, size, nmemb, f);
	if (took != nmemb)
		wrong("diy_fwrite(p, %zu, %zu, f) returned %zu and not %zu; nothing had failed%s", size, nmemb, took, nmemb,
		      took == size * nmemb && size > 1 ? ": return elements, not bytes" : "");
}

static void finish(DIY_FILE *f)
{
	if (diy_fclose(f) != 0)
		wrong("diy_fclose returned an error; nothing had failed");
}

/* get reads all of a file in calls for nmemb elements of size bytes, and compares. */
static void get(const char *name, size_t n, size_t size, size_t nmemb, const char *advice)
{
	DIY_FILE *f = opened(name, "r");
	size_t at = 0;
	memset(back, 0xEE, MOST);
	for (;;) {
		size_t left = (n - at) / size, want = left < nmemb ? left : nmemb;
		size_t got = diy_fread(back + at, size, nmemb, f);
		if (got != want)
			wrong("at byte %zu of %zu, diy_fread(p, %zu, %zu, f) returned %zu and not %zu: %s", at, n, size, nmemb, got, want, advice);
		if (memcmp(back + at, text + at, got * size) != 0)
			wrong("diy_fread returned other bytes than the file has, from byte %zu on: %s", at, advice);
		at += got * size;
		if (got < nmemb)
			break;
	}
	if (!diy_feof(f))
		wrong("the file is at its end, and diy_feof says that it is not");
	if (diy_ferror(f))
		wrong("nothing failed, and diy_ferror says that something did");
	finish(f);
}

/* ---- the cases ---- */

static void written(void)
{
	DIY_FILE *f = opened("file", "w");
	if (diy_fwrite(text, 1, 1, f) == 0)
		wrong("diy_fwrite took no byte: is it not written yet?");
	finish(f);
	make("file", 10);
	f = opened("file", "r");
	if (diy_fread(back, 1, 1, f) == 0)
		wrong("diy_fread read no byte: is it not written yet?");
	if (diy_fclose(f) != 0)
		wrong("diy_fclose returned an error for a stream that reads: what was read must not be written back");
}

static void writes_bytes(void)
{
	DIY_FILE *f = opened("file", "w");
	for (size_t i = 0; i < 3 * DIY_BUFFER; i++)
		put(f, text + i, 1, 1);
	finish(f);
	holds("file", text, 3 * DIY_BUFFER, "bytes that were taken must be written, in their order");
}

static void flush_at_close(void)
{
	DIY_FILE *f = opened("file", "w");
	for (size_t i = 0; i < DIY_BUFFER + 100; i++)
		put(f, text + i, 1, 1);
	finish(f);
	holds("file", text, DIY_BUFFER + 100, "what is still in the buffer must be written before the file is closed");
}

static void flush(void)
{
	DIY_FILE *f = opened("file", "w");
	put(f, text, 1, 10);
	if (diy_fflush(f) != 0)
		wrong("diy_fflush returned an error; nothing had failed");
	holds("file", text, 10, "diy_fflush must hand the bytes to the kernel at once");
	put(f, text + 10, 1, 10);
	finish(f);
	holds("file", text, 20, "after a flush the writing goes on behind what is written");
}

static void gathers(void)
{
	DIY_FILE *f = opened("file", "w");
	calm();
	for (size_t i = 0; i < 4 * DIY_BUFFER; i++)
		put(f, text + i, 1, 1);
	finish(f);
	if (io.writes > 8)
		wrong("%d bytes, one a call, took %ld calls of write(2); %d are enough: gather them in the buffer", 4 * DIY_BUFFER, io.writes, 4);
	make("file", 4 * DIY_BUFFER);
	calm();
	f = opened("file", "r");
	for (size_t i = 0; i < 4 * DIY_BUFFER; i++)
		if (diy_fread(back, 1, 1, f) != 1)
			wrong("diy_fread ended at byte %zu of %d", i, 4 * DIY_BUFFER);
	finish(f);
	if (io.reads > 9)
		wrong("%d bytes, one a call, took %ld calls of read(2); %d are enough: read a buffer full at once", 4 * DIY_BUFFER, io.reads, 4);
}

static void ends(void)
{
	make("file", DIY_BUFFER + 10);
	get("file", DIY_BUFFER + 10, 1, 1, "at the end of the file return how many were read");
	get("file", DIY_BUFFER + 10, 1, 3 * DIY_BUFFER, "at the end of the file return how many were read, not how many were asked for");
	make("file", 0);
	get("file", 0, 1, 10, "an empty file has no bytes");
}

static void elements(void)
{
	DIY_FILE *f = opened("file", "w");
	put(f, text, 7, 1000);
	put(f, text + 7000, 3, 700);
	if (diy_fwrite(text, 0, 5, f) != 0 || diy_fwrite(text, 5, 0, f) != 0)
		wrong("diy_fwrite of no bytes must return 0");
	finish(f);
	holds("file", text, 9100, "an element may lie across the end of the buffer");
	make("file", 9100);
	get("file", 9100, 7, 300, "return elements, not bytes, and let one lie across the end of the buffer");
	make("file", 100);
	f = opened("file", "r");
	size_t got = diy_fread(back, 8, 20, f);
	if (got != 12)
		wrong("a file of 100 bytes has 12 whole elements of 8, and diy_fread returned %zu", got);
	finish(f);
}

static void large(void)
{
	DIY_FILE *f = opened("file", "w");
	put(f, text, 1, 10);
	put(f, text + 10, 1, 5 * DIY_BUFFER + 123);
	put(f, text + 5 * DIY_BUFFER + 133, 1, 10);
	finish(f);
	holds("file", text, 5 * DIY_BUFFER + 143, "a call may be for more bytes than the buffer has room for");
	make("file", 5 * DIY_BUFFER + 143);
	get("file", 5 * DIY_BUFFER + 143, 1, 2 * DIY_BUFFER + 7, "a call may be for more bytes than the buffer holds");
}

static void short_reads(void)
{
	make("file", 9000);
	calm();
	io.most = 37;
	get("file", 9000, 100, 10, "read(2) may return fewer bytes than it was asked for; only 0 is the end");
}

static void short_writes(void)
{
	calm();
	io.most = 37;
	DIY_FILE *f = opened("file", "w");
	for (size_t i = 0; i < 90; i++)
		put(f, text + 100 * i, 100, 1);
	finish(f);
	holds("file", text, 9000, "write(2) may take fewer bytes than it was given: write the rest too");
}

static void interrupted(void)
{
	calm();
	io.interrupt = 1;
	DIY_FILE *f = opened("file", "w");
	for (size_t i = 0; i < 90; i++)
		if (diy_fwrite(text + 100 * i, 100, 1, f) != 1)
			wrong("a signal interrupted write(2) (EINTR), and diy_fwrite gave up: make the call again");
	if (diy_fclose(f) != 0)
		wrong("a signal interrupted write(2) (EINTR), and diy_fclose gave up: make the call again");
	holds("file", text, 9000, "EINTR is no error: make the call again");
	make("file", 9000);
	calm();
	io.interrupt = 1;
	get("file", 9000, 100, 10, "a signal interrupted read(2) (EINTR), which is no error: make the call again");
}

static void read_error(void)
{
	make("file", 3 * DIY_BUFFER);
	calm();
	io.fail = EIO;
	io.fail_at = 2;
	io.fail_times = 1000000;
	DIY_FILE *f = opened("file", "r");
	size_t n = 0;
	while (n < 3 * DIY_BUFFER && diy_fread(back + n, 1, 1, f) == 1)
		n++;
	if (n == 3 * DIY_BUFFER)
		wrong("the second read(2) failed with EIO, and diy_fread returned bytes all the same");
	if (memcmp(back, text, n) != 0)
		wrong("before the error diy_fread returned other bytes than the file has");
	if (!diy_ferror(f))
		wrong("read(2) failed with EIO, and diy_ferror says that nothing failed: the caller takes it for the end of the file");
	if (diy_feof(f))
		wrong("read(2) failed with EIO, and diy_feof says that the file is at its end");
	calm();
	diy_fclose(f);
}

static void full_disk(void)
{
	calm();
	io.fail = ENOSPC;
	io.fail_at = 2;
	io.fail_times = 1000000;
	DIY_FILE *f = opened("file", "w");
	int told = 0;
	for (size_t i = 0; i < 100; i++)
		if (diy_fwrite(text + 100 * i, 100, 1, f) != 1)
			told = 1;
	told |= diy_ferror(f) != 0;
	if (diy_fclose(f) != 0)
		told = 1;
	if (!told)
		wrong("the disk was full, 10,000 bytes were accepted and most are lost, and neither diy_fwrite nor diy_fclose reported it");
	if (io.closes != 1)
		wrong("diy_fclose on a full disk left the file open: close it whatever fails");

	calm();
	io.fail = ENOSPC;
	io.fail_at = 1;
	io.fail_times = 1000000;
	f = opened("file", "w");
	put(f, text, 1, 100);
	if (diy_fclose(f) == 0)
		wrong("the disk was full at the last flush, 100 bytes are lost, and diy_fclose returned 0");
}

static void full_for_a_while(void)
{
	calm();
	io.fail = ENOSPC;
	io.fail_at = 2;
	io.fail_times = 3;
	io.most = 1000;
	DIY_FILE *f = opened("file", "w");
	size_t taken = 0;
	for (int refused = 0; taken < 20000 && refused < 20;) {
		size_t took = diy_fwrite(text + taken, 1, 100, f);
		if (took > 100)
			wrong("diy_fwrite took %zu bytes of 100", took);
		refused = took == 0 ? refused + 1 : 0;
		taken += took;
	}
	if (diy_fclose(f) == 0)
		holds("file", text, taken, "after a failed write(2) keep what it did not take, and write it with the next flush: no byte lost, none twice");
}

static void two_streams(void)
{
	DIY_FILE *a = opened("a", "w"), *b = opened("b", "w");
	for (size_t i = 0; i < 6000; i++) {
		put(a, text + i, 1, 1);
		put(b, text + 6000 + i, 1, 1);
	}
	finish(a);
	finish(b);
	holds("a", text, 6000, "two open files need a buffer each");
	holds("b", text + 6000, 6000, "two open files need a buffer each");
	make("a", 6000);
	make("b", 9000);
	a = opened("a", "r");
	b = opened("b", "r");
	for (size_t i = 0; i < 6000; i++) {
		unsigned char x = 0, y = 0;
		if (diy_fread(&x, 1, 1, a) != 1 || diy_fread(&y, 1, 1, b) != 1 || x != text[i] || y != text[i])
			wrong("two files that are read in turn give each other's bytes, at byte %zu: they need a buffer each", i);
	}
	finish(a);
	finish(b);
}

static void closes(void)
{
	calm();
	finish(opened("file", "w"));
	if (io.closes != 1)
		wrong("diy_fclose called close(2) %ld times and not once", io.closes);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"written at all", written},
	{"bytes in order", writes_bytes},
	{"flush at close", flush_at_close},
	{"flush", flush},
	{"gathering", gathers},
	{"end of file", ends},
	{"elements", elements},
	{"large calls", large},
	{"short reads", short_reads},
	{"short writes", short_writes},
	{"EINTR", interrupted},
	{"read errors", read_error},
	{"full disk", full_disk},
	{"bytes after a full disk", full_for_a_while},
	{"two streams", two_streams},
	{"close", closes},
};

static void too_long(int signal)
{
	static const char said[] = "wrong it computes for seconds without an end\n";
	(void)signal;
	if (write(1, said, sizeof said - 1) < 0)
		_exit(2);
	_exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	directory = argv[1];
	for (size_t i = 0; i < MOST; i++)
		text[i] = (unsigned char)(i % 251);
	struct rlimit limit = {5, 10};
	signal(SIGXCPU, too_long);
	setrlimit(RLIMIT_CPU, &limit);
	struct rlimit core = {0, 0};
	setrlimit(RLIMIT_CORE, &core);
	for (size_t i = (size_t)atoi(argv[2]); i < sizeof cases / sizeof cases[0]; i++) {
		printf("case %zu %s\n", i, cases[i].name);
		fflush(stdout);
		calm();
		cases[i].run();
	}
	return 0;
}
