/** A token is four characters; what is left over at the end of a text is one too. */
export const TOKEN_LENGTH = 4;

export const textTokens = (text: string): number => Math.ceil(text.length / TOKEN_LENGTH);
