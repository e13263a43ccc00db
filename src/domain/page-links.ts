const link = (base: string, page: string, token: string): string =>
  `${base.replace(/\/$/, '')}/oauth/interaction/${page}?token=${token}`;

/** What a browser opens to sign in with the token of a link. @param base address of the gateway, or empty */
export const signInUrl = (base: string, token: string): string => link(base, 'link', token);

/** What a browser opens to accept an invitation. @param base as above */
export const invitationUrl = (base: string, token: string): string => link(base, 'invitation', token);
