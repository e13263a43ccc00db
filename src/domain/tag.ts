/** What a tag must be, for the answer to a wrong one. */
export const TAG_SHAPE = 'must be a word or `name:value`, of small letters, digits and _ . -';

/** As they are stored. */
export const sortedTags = (tags: readonly string[]): string[] => [...new Set(tags)].sort();
