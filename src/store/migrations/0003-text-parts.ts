/**
 * Long texts are kept in parts, so that a change rewrites those that it touches (text-parts.ts): the compiled rules of subjects, whose
 * parts stay because recorded decisions refer to them, and the values of rules, whose parts go with them. A long compiled text that is
 * there becomes one part until its rules are changed next; 2048 is the length up to which texts stay in their column.
 */
export const textParts = `
CREATE TABLE compiled_parts (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE rule_parts (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

INSERT INTO compiled_parts (digest, text)
  SELECT 'text of ' || subject_id, compiled_json FROM subject_rules WHERE length(compiled_json) > 2048;
INSERT INTO compiled_parts (digest, text)
  SELECT 'list of ' || subject_id, CAST(compiled_parts.id AS TEXT)
  FROM subject_rules JOIN compiled_parts ON compiled_parts.digest = 'text of ' || subject_id;
UPDATE subject_rules SET compiled_json =
  '@' || (SELECT id FROM compiled_parts WHERE digest = 'list of ' || subject_id)
  WHERE length(compiled_json) > 2048;
`;
