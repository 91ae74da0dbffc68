/*
 * example FROM TO copies a file a byte at a time, in a few system calls. It reports
 * every failure, those of the last flush and of close too.
 */
#include "df.h"

#include <stdio.h>

static int failed(const char *path)
{
	perror(path);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s FROM TO\n", argv[0]);
		return 2;
	}
	DF *in = dfopen(argv[1], "r");
	if (in == NULL)
		return failed(argv[1]);
	DF *out = dfopen(argv[2], "w");
	if (out == NULL) {
		int err = failed(argv[2]);
		dfclose(in);
		return err;
	}
	int err = 0, c;
	while ((c = dfgetc(in)) != DF_EOF)
		if (dfputc(c, out) == DF_EOF) {
			err = failed(argv[2]);
			break;
		}
	if (dferror(in) != 0)
		err = failed(argv[1]);
	if (dfclose(in) != 0)
		err = failed(argv[1]);
	if (dfclose(out) != 0) /* the last bytes go to the kernel here */
		err = failed(argv[2]);
	return err;
}
