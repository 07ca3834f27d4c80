/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * nccl_net PLUGIN: does what NCCL does first with a net plugin, and needs no GPU for it: it
 * initializes the plugin, and reads the properties of its devices. The interface is
 * ncclNetPlugin_v8 of NCCL's documentation of external plugins.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { CUDA_OK = 0, CUDA_NO_DEVICE = 100 };

typedef void logger(int level, unsigned long flags, const char *file, int line, const char *format,
		    ...);

struct properties {
	char *name, *pci_path;
	uint64_t guid;
	int ptr_support, reg_is_global, speed, port;
	float latency;
	int max_comms, max_recvs;
	int device_type, device_version;
};

/* What follows in the plugin's table is for connections. */
struct net {
	const char *name;
	int (*init)(logger *log);
	int (*devices)(int *count);
	int (*properties)(int dev, struct properties *properties);
};

/*
 * The plugin asks these of the CUDA runtime, which a program of NCCL's has. They say what is so:
 * there is no GPU.
 */
int cudaGetDeviceCount(int *count)
{
	*count = 0;
	return CUDA_OK;
}

int cudaGetDevice(int *device)
{
	return CUDA_NO_DEVICE;
}

int cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
	return CUDA_NO_DEVICE;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	return CUDA_NO_DEVICE;
}

const char *cudaGetErrorString(int error)
{
	return "there is no GPU";
}

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static int device_print(const struct net *net, int dev)
{
	struct properties properties;
	int rc = net->properties(dev, &properties);

	if (rc)
		printf("getProperties: %d\n", rc);
	else
		printf("device %d: %s, %d Mbit/s, port %d, guid %#llx, at %s\n", dev,
		       properties.name, properties.speed, properties.port,
		       (unsigned long long)properties.guid,
		       properties.pci_path ? properties.pci_path : "no place");
	return rc;
}

int main(int argc, char **argv)
{
	void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const struct net *net = plugin ? dlsym(plugin, "ncclNetPlugin_v8") : NULL;
	int count = 0, rc;

	if (!net) {
		puts(argc == 2 ? dlerror() : "usage: nccl_net PLUGIN");
		return 2;
	}
	rc = net->init(say);
	if (!rc)
		rc = net->devices(&count);
	printf("%s: devices: %d\n", net->name, count);
	for (int dev = 0; !rc && dev < count; dev++)
		rc = device_print(net, dev);
	fflush(stdout);
	/* UCCL's destructors wait for its own threads, sometimes for ever (0.0.1.post4). */
	_exit(rc || !count);
}
