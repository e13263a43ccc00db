import { createHmac, randomBytes } from 'node:crypto';

const BYTES = 32;
const LENGTH = Math.ceil((BYTES * 8) / 6);

/** The value of a cookie that nobody guesses: 256 random bits. */
export const newSessionSecret = (): string => randomBytes(BYTES).toString('base64url');

/** Whether a text has the form of one. */
export const isSessionSecret = (text: string): boolean => text.length === LENGTH && /^[\w-]+$/.test(text);

/** What the forms of a session carry: only who has the cookie's value can compute it, and it does not tell that value. */
export const csrfTokenOf = (secret: string): string => createHmac('sha256', secret).update('csrf').digest('base64url');
