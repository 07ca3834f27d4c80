/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/overlay.h"

#include <errno.h>
#include <string.h>

/*
 * Where we are is walk->path, of that length. It has no links, so whatever of it is in the upper
 * tree is a beginning of it.
 */
struct walker {
	const struct vb_overlay *overlay;
	struct vb_overlay_walk *walk;
	unsigned length, upper_length;
	unsigned links;
	const char *rest; /* what is still to be walked, in ahead */
	char ahead[VB_OVERLAY_CHARS];
	char target[VB_OVERLAY_CHARS];
};

static int look(struct walker *walker, bool is_upper)
{
	const struct vb_overlay *overlay = walker->overlay;

	walker->target[0] = '\0';
	return overlay->look(overlay->host, is_upper, walker->walk->path, walker->target);
}

static bool is_upper(const struct walker *walker)
{
	return walker->upper_length == walker->length;
}

static void cut(struct walker *walker, unsigned length)
{
	walker->walk->path[length] = '\0';
	walker->length = length;
	if (walker->upper_length > length)
		walker->upper_length = length;
}

static int append(struct walker *walker, const char *name, unsigned chars)
{
	if (walker->length + 1 + chars >= VB_OVERLAY_CHARS)
		return ENAMETOOLONG;
	walker->walk->path[walker->length] = '/';
	memcpy(walker->walk->path + walker->length + 1, name, chars);
	walker->length += 1 + chars;
	walker->walk->path[walker->length] = '\0';
	return 0;
}

/* Only a folder has "." and "..", whatever is asked for in it. */
static int folder_check(struct walker *walker)
{
	bool in_upper = is_upper(walker);
	unsigned length = walker->length, upper_length = walker->upper_length;
	int rc;

	if (!length)
		return 0;
	rc = append(walker, ".", 1);
	if (!rc)
		rc = look(walker, in_upper);
	cut(walker, length);
	walker->upper_length = upper_length;
	return rc;
}

static int leave(struct walker *walker)
{
	unsigned length = walker->length;

	if (is_upper(walker) && length && (look(walker, false) || walker->target[0]))
		walker->walk->is_detour = true;
	while (length && walker->walk->path[--length] != '/')
		;
	cut(walker, length);
	return 0;
}

/* Puts a link's target, which is in walker->target, before what is still to be walked. */
static int link_follow(struct walker *walker, unsigned parent_length)
{
	size_t chars = strlen(walker->target), rest = strlen(walker->rest);

	if (is_upper(walker))
		walker->walk->is_detour = true;
	if (++walker->links > VB_OVERLAY_LINKS_MAX)
		return ELOOP;
	if (chars + 1 + rest >= VB_OVERLAY_CHARS)
		return ENAMETOOLONG;
	memmove(walker->ahead + chars + 1, walker->rest, rest + 1);
	memcpy(walker->ahead, walker->target, chars);
	walker->ahead[chars] = rest ? '/' : '\0';
	walker->rest = walker->ahead;
	cut(walker, walker->target[0] == '/' ? 0 : parent_length);
	return 0;
}

/* Goes on to a name. What is at it, unless that is a link to follow, is said in walk. */
static int enter(struct walker *walker, const char *name, unsigned chars, bool follow)
{
	struct vb_overlay_walk *walk = walker->walk;
	unsigned parent_length = walker->length;
	bool in_upper = is_upper(walker);
	int upper = ENOENT, lower = ENOENT, rc = append(walker, name, chars);

	if (rc)
		return rc;
	if (in_upper)
		upper = look(walker, true);
	if (!upper)
		walker->upper_length = walker->length;
	else
		lower = look(walker, false);
	if (upper && lower) {
		walk->has = VB_OVERLAY_NOTHING;
		walk->error = lower == ENOENT ? upper : lower;
		return 0;
	}
	walk->has = upper ? VB_OVERLAY_LOWER : VB_OVERLAY_UPPER;
	return follow && walker->target[0] ? link_follow(walker, parent_length) : 0;
}

static int name_walk(struct walker *walker, const char *name, unsigned chars, bool follow)
{
	int rc;

	if (walker->walk->has == VB_OVERLAY_NOTHING)
		return walker->walk->error;
	if (name[0] != '.' || chars > 2 || (chars == 2 && name[1] != '.'))
		return enter(walker, name, chars, follow);
	rc = folder_check(walker);
	return !rc && chars == 2 ? leave(walker) : rc;
}

/* Says what of the two trees has the end of the way. */
static void end_judge(struct walker *walker)
{
	struct vb_overlay_walk *walk = walker->walk;

	if (!walker->length) {
		walk->path[0] = '/';
		walk->path[1] = '\0';
		walk->has = VB_OVERLAY_BOTH;
		walk->is_folder = true;
		return;
	}
	if (walk->has == VB_OVERLAY_NOTHING)
		return;
	walk->has = is_upper(walker) ? VB_OVERLAY_UPPER : VB_OVERLAY_LOWER;
	if (!is_upper(walker) || look(walker, true))
		return;
	walk->is_link = walker->target[0];
	walk->is_folder = !walk->is_link && !folder_check(walker);
	if (walk->is_folder && !look(walker, false))
		walk->has = VB_OVERLAY_BOTH;
}

int vb_overlay_walk(const struct vb_overlay *overlay, const char *path, bool follow,
		    struct vb_overlay_walk *walk)
{
	struct walker walker = {.overlay = overlay, .walk = walk};
	size_t chars = strnlen(path, VB_OVERLAY_CHARS);
	int rc = 0;

	if (chars == VB_OVERLAY_CHARS)
		return ENAMETOOLONG;
	memset(walk, 0, sizeof(*walk));
	walk->has = VB_OVERLAY_BOTH;
	memcpy(walker.ahead, path, chars + 1);
	walker.rest = walker.ahead;
	while (!rc) {
		const char *name = walker.rest, *end;

		while (*name == '/')
			name++;
		/* A link's target may end in a slash, too. */
		walk->is_slashed = name > walker.rest;
		if (!*name)
			break;
		for (end = name; *end && *end != '/'; end++)
			;
		walker.rest = end;
		rc = name_walk(&walker, name, (unsigned)(end - name), follow || *end);
	}
	if (!rc)
		end_judge(&walker);
	return rc;
}
