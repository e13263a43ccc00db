/** What people wrote must not reach a terminal as commands to it. */
export const plainText = (text: string): string => text.replace(/\p{Cc}/gu, ' ');
