import type { OAuthClientMetadata, OAuthClientProvider } from '@modelcontextprotocol/client';
import type { TestGateway } from '../../support/gateway.ts';
import { allowAt, REDIRECT } from './application.ts';

type Saved<Name extends 'saveTokens' | 'saveClientInformation'> = Parameters<NonNullable<OAuthClientProvider[Name]>>[0];

/** What an application keeps for its login, and a person who allows it at once. */
export class Login implements OAuthClientProvider {
  /** Where the application's metadata is published; undefined: it registers. */
  readonly clientMetadataUrl?: string;
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata: OAuthClientMetadata = { client_name: 'SDK', redirect_uris: [REDIRECT] };
  callback = new URLSearchParams();
  #client: Saved<'saveClientInformation'> | undefined;
  #tokens: Saved<'saveTokens'> | undefined;
  #verifier = '';
  readonly #gateway: TestGateway;
  logins = 0;

  constructor(gateway: TestGateway, clientMetadataUrl?: string) {
    this.#gateway = gateway;
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }

  clientInformation = () => this.#client;
  saveClientInformation(client: Saved<'saveClientInformation'>): void {
    this.#client = client;
  }
  tokens = () => this.#tokens;
  saveTokens(tokens: Saved<'saveTokens'>): void {
    this.#tokens = tokens;
  }
  codeVerifier = () => this.#verifier;
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  /** The access token is worth nothing any more; the refresh token is. */
  spoil(): void {
    if (this.#tokens !== undefined) this.#tokens = { ...this.#tokens, access_token: 'expired' };
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.logins += 1;
    this.callback = (await allowAt(this.#gateway, url)).searchParams;
  }
}
