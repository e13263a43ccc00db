import schema from '../../schemas/config.json' with { type: 'json' };
import { code, sections, table } from './markdown.ts';

interface Setting {
  readonly description: string;
  readonly topic: string;
  readonly default?: string;
}

const settings: readonly (readonly [name: string, setting: Setting])[] = Object.entries(schema.properties);
const patterns = Object.entries(schema.patternProperties).map(
  ([pattern, { description }]) => [pattern, description] as const,
);

/** A table for each topic. */
export const settingTables = (): string =>
  sections(
    [...Map.groupBy(settings, ([, { topic }]) => topic)].map(([topic, own]) => [
      topic,
      table(
        ['Variable', 'Default', 'Meaning'],
        own.map(([name, { default: value, description }]) => [
          code(name),
          value === undefined ? '' : code(value),
          description,
        ]),
      ),
    ]),
  );

/** The variables whose names begin with a pattern, which a placeholder stands for. */
const namedTable = (beginning: string, placeholder: string): string =>
  table(
    ['Variable', 'Meaning'],
    patterns
      .filter(([pattern]) => pattern.startsWith(beginning))
      .map(([pattern, description]) => [code(placeholder + pattern.slice(beginning.length, -1)), description]),
  );

export const catalogueSettings = (): string => namedTable('^[A-Z0-9]+', '<PROVIDER>');
export const upstreamSettings = (): string => namedTable('^UPSTREAM_[A-Z0-9]+(_[A-Z0-9]+)*', 'UPSTREAM_<NAME>');
