/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "group.h"
#include "nic/core/handle.h"

enum { FAMILY = 7, NUMBER = 5 };

struct object {
	struct vb_handle handle;
	_Atomic uint32_t users;
};

static struct vb_handles handles;
static unsigned freed;

static void object_free(void *object)
{
	freed++;
	free(object);
}

static struct object *object_new(void)
{
	struct object *object = calloc(1, sizeof(*object));

	object->handle = (struct vb_handle){ .object = object, .free = object_free,
					     .family = FAMILY, .number = NUMBER,
					     .users = &object->users };
	return object;
}

static struct object *made(void)
{
	struct object *object = object_new();

	vb_handle_add(&handles, &object->handle);
	return object;
}

static struct object *imported(void)
{
	struct vb_handle *original = vb_handle_find(&handles, FAMILY, NUMBER);
	struct object *object = object_new();

	assert_non_null(original);
	vb_handle_import(&handles, &object->handle, original);
	return object;
}

static bool is_there(void)
{
	struct vb_handle *found = vb_handle_find(&handles, FAMILY, NUMBER);

	if (found)
		vb_handle_unfind(&handles, found);
	return found;
}

static void destroy(struct object *object)
{
	assert_true(vb_handle_kill(&handles, &object->handle));
	vb_handle_drop(&handles, &object->handle);
}

static void give_up(struct object *object)
{
	vb_handle_drop(&handles, &object->handle);
}

static int begin(void **state)
{
	memset(&handles, 0, sizeof(handles));
	vb_handles_init(&handles);
	freed = 0;
	return 0;
}

static int end(void **state)
{
	assert_null(handles.first);
	assert_int_equal(handles.waiting, 0);
	vb_handles_fini(&handles);
	return 0;
}

#define HANDLE_TEST(name) TEST_BETWEEN(name, begin, end)

HANDLE_TEST(what_was_made_is_found_until_it_is_destroyed)
{
	struct object *object = made();

	assert_true(is_there());
	assert_null(vb_handle_find(&handles, FAMILY + 1, NUMBER));
	assert_null(vb_handle_find(&handles, FAMILY, NUMBER + 1));
	destroy(object);
	assert_int_equal(freed, 1);
	assert_false(is_there());
}

HANDLE_TEST(an_import_that_is_given_up_leaves_the_object)
{
	struct object *object = made(), *import = imported();

	give_up(import);
	assert_int_equal(freed, 1);
	assert_true(is_there());
	destroy(object);
	assert_int_equal(freed, 2);
}

/* It is freed when nobody reads it any more, in either order. */
HANDLE_TEST(the_first_to_destroy_destroys)
{
	struct object *object = made(), *import = imported();

	assert_true(vb_handle_kill(&handles, &object->handle));
	assert_false(vb_handle_kill(&handles, &import->handle));
	assert_false(is_there());
	give_up(object);
	assert_int_equal(freed, 0);
	give_up(import);
	assert_int_equal(freed, 2);
	object = made();
	import = imported();
	destroy(import);
	assert_int_equal(freed, 3);
	assert_true(object->handle.dead);
	give_up(object);
	assert_int_equal(freed, 4);
}

HANDLE_TEST(what_could_not_be_destroyed_lives)
{
	struct object *object = made();

	assert_true(vb_handle_kill(&handles, &object->handle));
	assert_false(is_there());
	vb_handle_revive(&handles, &object->handle);
	assert_true(is_there());
	destroy(object);
}

HANDLE_TEST(an_object_lives_on_without_a_pointer)
{
	struct object *object = made(), *import;

	give_up(object);
	assert_int_equal(freed, 0);
	assert_true(is_there());
	import = imported();
	destroy(import);
	assert_int_equal(freed, 2);
}

HANDLE_TEST(users_of_any_handle_are_users)
{
	struct object *object = made(), *import = imported(), *another = made();

	assert_false(vb_handle_is_used(&handles, &object->handle));
	atomic_store(&import->users, 1);
	assert_true(vb_handle_is_used(&handles, &object->handle));
	assert_true(vb_handle_is_used(&handles, &import->handle));
	assert_false(vb_handle_is_used(&handles, &another->handle));
	atomic_store(&import->users, 0);
	atomic_store(&object->users, 1);
	assert_true(vb_handle_is_used(&handles, &import->handle));
	atomic_store(&object->users, 0);
	give_up(import);
	destroy(object);
	destroy(another);
}

/* What still has users is freed when they are gone, at the next occasion. */
HANDLE_TEST(users_keep_what_was_given_up)
{
	struct object *object = made(), *import = imported(), *another;

	atomic_store(&import->users, 2);
	give_up(import);
	assert_int_equal(freed, 0);
	another = made();
	assert_int_equal(freed, 0);
	atomic_store(&import->users, 0);
	destroy(another);
	assert_int_equal(freed, 2);
	destroy(object);
	assert_int_equal(freed, 3);
}

HANDLE_TEST(what_nobody_holds_is_freed_in_the_end)
{
	struct object *held = made();

	give_up(made());
	give_up(imported());
	vb_handles_fini(&handles);
	assert_int_equal(freed, 2);
	assert_ptr_equal(handles.first, &held->handle);
	vb_handles_init(&handles);
	destroy(held);
}
