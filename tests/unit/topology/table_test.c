/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "group.h"
#include "topology/table.h"

static struct vb_topology table;
static char why[VB_TOPOLOGY_WHY_BYTES];
static const uint8_t nowhere[VB_GID_BYTES];

static int parse(const char *text)
{
	return vb_topology_parse(&table, "x.topology", text, strlen(text), why);
}

static int parse_short(const char *text)
{
	return vb_topology_parse_short(&table, text, strlen(text), why);
}

static void good(const char *text)
{
	if (parse(text))
		fail_msg("%s: %s", text, why);
	assert_string_equal(why, "");
}

static void bad(const char *text, const char *words)
{
	const struct vb_topology before = table;

	assert_int_equal(parse(text), EINVAL);
	assert_string_equal(why, words);
	assert_memory_equal(&table, &before, sizeof(table));
}

TEST(the_default_is_one_device_with_all_interfaces)
{
	const struct vb_topology *plain = &vb_topology_default;

	assert_int_equal(plain->count, 1);
	assert_string_equal(plain->device[0].name, "verbatim0");
	assert_int_equal(plain->device[0].uverbs, 0);
	assert_true(vb_topology_has(plain, &plain->device[0], "eth0", nowhere));
}

TEST(all_that_is_said_of_a_device_is_read)
{
	const struct vb_topology_device *device;
	uint8_t address[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 7 };

	good("# two rails\n"
	     "[device rail0]\n"
	     "interfaces = eth0, eth1 # both\n"
	     "addresses = 10.0.0.7 fd00::1\n"
	     "rate = 100Gbit\n\tnuma = 1\r\npci = 17:00.0\n"
	     "persona = ./my.persona\nfabric=a\nmax_qp = 16\nmax_cqe = 0x40\n"
	     "gids = v1, holes\nuverbs = 1\n"
	     "[device rail1]\n");
	assert_int_equal(table.count, 2);
	device = vb_topology_find(&table, "rail0");
	assert_ptr_equal(device, &table.device[0]);
	assert_int_equal(device->place_count, 4);
	assert_string_equal(device->place[1].interface, "eth1");
	assert_memory_equal(device->place[2].address, address, sizeof(address));
	assert_int_equal(device->rate_mbps, 100000);
	assert_true(device->has_numa);
	assert_int_equal(device->numa, 1);
	assert_string_equal(device->pci, "0000:17:00.0");
	assert_string_equal(device->persona, "./my.persona");
	assert_string_equal(device->fabric, "a");
	assert_int_equal(device->gids, VB_GIDS_V1 | VB_GIDS_HOLES);
	assert_int_equal(device->limits.most[VB_LIMIT_QP], 16);
	assert_int_equal(device->limits.most[VB_LIMIT_CQE], 64);
	assert_int_equal(device->limits.said, 1u << VB_LIMIT_QP | 1u << VB_LIMIT_CQE);
	assert_int_equal(device->uverbs, 1);
	assert_int_equal(device->line, 2);
	assert_int_equal(table.device[1].uverbs, 0);
	assert_null(vb_topology_find(&table, "rail2"));
}

TEST(a_mistake_is_named_with_its_place_and_the_remedy)
{
	bad("", "x.topology names no device: one begins with a line such as [device rail0]");
	bad("rate = 1Gbit",
	    "x.topology:1:1: a device begins with a line such as [device rail0]");
	bad("[devise a]", "x.topology:1:2: there is no section 'devise'; did you mean 'device'? "
			  "Sections: device");
	bad("[device a\n", "x.topology:1:1: a section ends with ']', as in [device rail0]");
	bad("[device]", "x.topology:1:8: a device's name is empty: it is a word of 1 to 63 "
			"letters, digits, '_', '-' or '.'");
	bad("[device a/b]", "x.topology:1:9: a device's name cannot be 'a/b': it is a word of 1 "
			    "to 63 letters, digits, '_', '-' or '.'");
	bad("[device a]\n[device a]\n",
	    "x.topology:2:9: there are two devices 'a': each needs a name of its own");
	bad("[device a]\n rate 100Gbit\n",
	    "x.topology:2:2: a line says 'key = value', begins a section such as "
	    "[device rail0], or is a comment behind '#'");
	bad("[device a]\nrate = 99Gbit\n",
	    "x.topology:2:8: rate cannot be '99Gbit': it is one of 1Gbit, 10Gbit, 25Gbit, "
	    "40Gbit, 50Gbit, 100Gbit, 200Gbit and 400Gbit");
	bad("[device a]\nnuma =\n",
	    "x.topology:2:7: numa is empty: it is the number of a NUMA node, from 0 to 1023");
	bad("[device a]\nnuma = 0\nnuma = 1\n",
	    "x.topology:3:1: numa is said twice");
	bad("[device a]\nmax_qp = 0\n", "x.topology:2:10: max_qp is a number from 1 to 65524");
	bad("[device a]\npersona = efas\n",
	    "x.topology:2:11: there is no persona 'efas'; did you mean 'efa'? Personas: "
	    "neutral, connectx7, efa; a file's path has a '/'");
	bad("[device a]\ngids = hole\n",
	    "x.topology:2:8: there is no variety of GID tables 'hole'; did you mean 'holes'? "
	    "Varieties: plain, v1, link-local-first, holes");
}

TEST(an_unknown_key_has_its_nearest_named)
{
	assert_int_equal(parse("[device a]\ninterface = eth0"), EINVAL);
	assert_non_null(strstr(why, "x.topology:2:1: there is no key 'interface'; did you mean "
				    "'interfaces'? Keys: interfaces, addresses, "));
	assert_non_null(strstr(why, ", max_qp_init_rd_atom"));
}

TEST(what_two_devices_cannot_share_is_refused)
{
	bad("[device a]\ninterfaces = eth0\n[device b]\ninterfaces = eth1 eth0\n",
	    "x.topology:4:19: 'eth0' belongs to the device a already: name it once");
	bad("[device a]\naddresses = 10.0.0.1 10.0.0.1\n",
	    "x.topology:2:22: '10.0.0.1' belongs to the device a already: name it once");
	bad("[device a]\nuverbs = 2\n[device b]\nuverbs = 2\n",
	    "x.topology:4:10: the device a has this number already");
	bad("[device a]\npci = 0000:17:00.0\n[device b]\npci = 17:00.0\n",
	    "x.topology:4:7: the device a is at this address already");
	good("[device a]\npci = virtual\n[device b]\npci = virtual\n");
}

TEST(the_table_is_bounded)
{
	char text[4096];
	size_t used = 0;

	for (unsigned i = 0; i <= VB_TOPOLOGY_DEVICES_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[device d%u]\n", i);
	bad(text, "x.topology:17:9: there are 16 devices at most");
	used = (size_t)snprintf(text, sizeof(text), "[device a]\ninterfaces =");
	for (unsigned i = 0; i <= VB_TOPOLOGY_PLACES_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " e%u", i);
	bad(text, "x.topology:2:68: 'e16' is one too many: a device has 16 interfaces and "
		  "addresses");
}

TEST(the_short_form_names_devices_and_places)
{
	assert_int_equal(parse_short("rail0=eth0,rail1=eth1+10.0.0.7"), 0);
	assert_int_equal(table.count, 2);
	assert_string_equal(table.device[1].name, "rail1");
	assert_int_equal(table.device[1].uverbs, 1);
	assert_string_equal(table.device[1].place[0].interface, "eth1");
	assert_string_equal(table.device[1].place[1].interface, "");
	assert_true(vb_topology_is_short("rail0=eth0"));
	assert_false(vb_topology_is_short("./a=b") || vb_topology_is_short("rails"));
	assert_int_equal(parse_short("rail0=eth0,rail0=eth1"), EINVAL);
	assert_string_equal(why, "at 12: there are two devices 'rail0': each needs a name of its "
				 "own");
	assert_int_equal(parse_short("rail0"), EINVAL);
	assert_string_equal(why, "at 6: a place is empty: it is an interface or an address, as "
				 "in rail0=eth0,rail1=eth1+10.0.0.7");
	assert_int_equal(parse_short(""), EINVAL);
}

TEST(an_address_has_the_device_that_names_it)
{
	uint8_t seven[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 7 };
	const struct vb_topology_device *a = &table.device[0], *b = a + 1, *rest = a + 2;

	good("[device a]\ninterfaces = eth0\n[device b]\naddresses = 10.0.0.7\n[device rest]\n");
	assert_true(vb_topology_has(&table, a, "eth0", nowhere));
	assert_false(vb_topology_has(&table, b, "eth0", nowhere));
	assert_false(vb_topology_has(&table, rest, "eth0", nowhere));
	/* the address counts more than its interface */
	assert_false(vb_topology_has(&table, a, "eth0", seven));
	assert_true(vb_topology_has(&table, b, "eth0", seven));
	assert_false(vb_topology_has(&table, rest, "eth0", seven));
	assert_true(vb_topology_has(&table, rest, "eth1", nowhere));
	assert_false(vb_topology_has(&table, a, "eth1", nowhere));
}
