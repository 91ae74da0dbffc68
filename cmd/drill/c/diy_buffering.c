/*
 * The drill: write diy_fread, and diy_fwrite with its diy_fflush. All else is given.
 */
#include "diy_buffering.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct diy_file {
	int fd;
	int writing; /* it was opened with "w" */
	int eof, error;
	size_t start, end; /* the bytes in the buffer: buffer[start] to buffer[end - 1] */
	unsigned char buffer[DIY_BUFFER];
};

DIY_FILE *diy_fopen(const char *path, const char *mode)
{
	int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
	DIY_FILE *f = calloc(1, sizeof *f);
	if (f == NULL)
		return NULL;
	f->fd = open(path, flags, 0666);
	if (f->fd < 0) {
		free(f);
		return NULL;
	}
	f->writing = *mode == 'w';
	return f;
}

size_t diy_fread(void *p, size_t size, size_t nmemb, DIY_FILE *f)
{
	/*
	 * TODO 1. While the buffer has bytes, give them out. When it has none, fill it by one
	 * call of read(2). What if read returns fewer bytes than you asked for? Or 0? Or -1?
	 */
	(void)p;
	(void)size;
	(void)nmemb;
	(void)f;
	return 0;
}

size_t diy_fwrite(const void *p, size_t size, size_t nmemb, DIY_FILE *f)
{
	/*
	 * TODO 2. Put the bytes into the buffer. When it is full, hand it to write(2). What if
	 * there are more bytes than the buffer has room for?
	 */
	(void)p;
	(void)size;
	(void)nmemb;
	(void)f;
	return 0;
}

int diy_fflush(DIY_FILE *f)
{
	/*
	 * TODO 2, too. Hand what the buffer holds to write(2). What if write takes a part of
	 * it? What if a signal interrupts it (EINTR)? What if the disk is full?
	 */
	(void)f;
	return 0;
}

int diy_fclose(DIY_FILE *f)
{
	int result = f->writing ? diy_fflush(f) : 0; /* what was read is not written back */
	if (close(f->fd) != 0)
		result = -1;
	free(f);
	return result;
}

int diy_feof(const DIY_FILE *f)
{
	return f->eof;
}

int diy_ferror(const DIY_FILE *f)
{
	return f->error;
}
