/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <infiniband/verbs.h>

#include "group.h"
#include "topology/persona.h"

static struct vb_persona persona;
static char why[VB_PERSONA_WHY_BYTES];

static int parse(const char *text)
{
	return vb_persona_parse(&persona, "dir/x.persona", text, strlen(text), why);
}

static void bad(const char *text, const char *words)
{
	assert_int_equal(parse(text), EINVAL);
	assert_string_equal(why, words);
}

TEST(the_personas_built_in_are_sound)
{
	for (unsigned i = 0; i < vb_persona_names.count; i++) {
		assert_true(vb_persona_make(&persona, vb_words_at(&vb_persona_names, i)));
		assert_string_equal(persona.name, vb_words_at(&vb_persona_names, i));
		assert_true(vb_persona_is_sound(&persona));
	}
	assert_true(vb_persona_make(&persona, "connectx7"));
	assert_true(persona.vendor_id == 0x02c9 && persona.part_id == 4129 && persona.has_parcels);
	assert_string_equal(persona.fw_ver, "28.0.0");
	assert_string_equal(vb_words_at(&vb_persona_names, 0), "neutral");
	assert_false(vb_persona_make(&persona, "connectx"));
}

TEST(words_stand_for_what_verbs_has)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(persona.node_type, IBV_NODE_CA);
	assert_int_equal(persona.transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(persona.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(parse("node_type = unspecified\ntransport = unspecified\n"
			       "link_layer = unspecified\nservices = ud srd"), 0);
	assert_int_equal(persona.node_type, IBV_NODE_UNSPECIFIED);
	assert_int_equal(persona.transport_type, IBV_TRANSPORT_UNSPECIFIED);
	assert_int_equal(persona.link_layer, IBV_LINK_LAYER_UNSPECIFIED);
	assert_int_equal(persona.services, VB_OFFERS_UD | VB_OFFERS_SRD);
	assert_string_equal(persona.name, "x.persona");
}

TEST(a_file_may_begin_as_another_persona)
{
	assert_int_equal(parse("like = connectx7\nmax_qp = 16\ngids = v1\nfw_ver = 28.39.1002\n"),
			 0);
	assert_true(persona.vendor_id == 0x02c9 && persona.gids == VB_GIDS_V1);
	assert_int_equal(persona.limits.most[VB_LIMIT_QP], 16);
	assert_string_equal(persona.fw_ver, "28.39.1002");
	assert_string_equal(persona.name, "x.persona");
	bad("max_qp = 16\nlike = connectx7",
	    "dir/x.persona:2:1: 'like' is the first of all keys: it sets the others");
}

TEST(a_mistake_is_named_with_its_place_and_the_remedy)
{
	bad("[device a]", "dir/x.persona:1:2: a persona has no sections");
	bad("like = connectx6", "dir/x.persona:1:8: there is no persona 'connectx6'; did you mean "
				"'connectx7'? Personas: neutral, connectx7, efa");
	bad("vendor_id = 0x1ffffffff", "dir/x.persona:1:13: vendor_id cannot be '0x1ffffffff': it "
				       "is a number of 32 bits, decimal or with 0x");
	bad("max_cqe = 0", "dir/x.persona:1:11: max_cqe is a number from 1 to 4194304");
	bad("services =", "dir/x.persona:1:11: services is empty: it is some of rc, uc, ud, xrc, "
			  "dc, raw and srd");
}

TEST(octets_from_elsewhere_are_looked_at)
{
	assert_int_equal(parse("max_qp = 16"), 0);
	assert_true(vb_persona_is_sound(&persona));
	persona.limits.most[VB_LIMIT_QP] = 1 << 30;
	assert_false(vb_persona_is_sound(&persona));
	assert_int_equal(parse(""), 0);
	memset(persona.name, 'x', sizeof(persona.name));
	assert_false(vb_persona_is_sound(&persona));
	assert_int_equal(parse(""), 0);
	persona.limits.said = UINT32_MAX;
	assert_false(vb_persona_is_sound(&persona));
}
