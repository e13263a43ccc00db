import { Option } from 'commander';
import type { ConditionFields } from '../../domain/iam-rule.ts';

/** Options by the field of the value that they fill, of each kind whose value is conditions. */
type ConditionOptions = {
  readonly [Kind in keyof ConditionFields]: {
    /** What a sentence calls them. */
    readonly called: string;
    readonly fields: Readonly<Record<ConditionFields[Kind], Option>>;
  };
};

/** The options that state conditions. @param more a word that each takes as well, when it has choices */
export const conditionOptions = (...more: string[]): ConditionOptions => ({
  pricing: {
    called: 'Price options',
    fields: {
      pricingType: new Option('--type <type>', 'pricing rules: the type of price').choices(['free', 'paid', ...more]),
      maxInputPrice: new Option('--max-input-price <usd>', 'pricing rules: USD per million input tokens'),
      maxOutputPrice: new Option('--max-output-price <usd>', 'pricing rules: USD per million output tokens'),
    },
  },
});
