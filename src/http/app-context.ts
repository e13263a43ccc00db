import type { LogReader } from '../admin/log/log-reader.ts';
import type { RefusedRecorder } from '../admin/log/refused-recorder.ts';
import type { UsageReporter } from '../admin/usage/usage-query.ts';
import type { Authenticate, AuthenticateToken } from '../core/caller.ts';
import type { CoreContext } from '../core/core-context.ts';
import type { ListModels } from '../core/list-models.ts';
import type { CheckAddress } from '../core/reachable.ts';
import type { Endpoint, TrustedProxies } from '../domain/address.ts';
import type { Pepper } from '../domain/id.ts';
import type { EncryptionKey } from '../domain/provider.ts';
import type { McpServer } from '../mcp/mcp-server.ts';
import type { AuthorizationServer } from '../oauth/authorization-server.ts';
import type { PolicyStatus } from '../policy/pdp.ts';
import type { Analyst } from '../workbench/analysis/analyst.ts';
import type { PolicyKeeper } from '../workbench/bundles/policy-keeper.ts';
import type { BodyLimits } from './body.ts';
import type { Load } from './state.ts';

/** Names under which a listener is reached. */
export interface HostCheckOptions {
  /** The address that the listener is bound to. */
  readonly boundHost: string;
  readonly publicUrl: string | undefined;
  readonly allowedHosts: readonly string[];
}

/** Why no more requests should come (`/ready`); undefined: they may. */
export type Readiness = () => Promise<string | undefined>;

/** Form of `metadata`: as in the specification, or, for SDKs that type it so, with every value a string. */
export type MetadataForm = 'object' | 'strings';

/** The parts that a listener does not share with the other one. */
export interface ListenerContext {
  readonly load: Load;
  readonly hosts: HostCheckOptions;
  /** Origins whose web pages may call. */
  readonly allowedOrigins: readonly string[];
  /** Records requests that are refused before they are calls; undefined: nothing does. */
  readonly refused: RefusedRecorder | undefined;
}

/**
 * All parts of the process that the doors use: one plain object, which `src/assembly.ts` makes once. A route that uses few takes
 * `Pick<AppContext, …>`.
 */
export interface AppContext extends CoreContext {
  readonly version: string;
  /** Aborted when the product stops. */
  readonly stopping: AbortSignal;
  readonly readiness: Readiness;
  /** Status of the policy that decides: that of `policy` once it is activated. */
  readonly policyStatus: () => PolicyStatus;
  readonly policy: Pick<PolicyKeeper, 'inForce' | 'history'>;
  readonly gateway: ListenerContext;
  readonly management: ListenerContext;
  readonly bodyLimits: BodyLimits;
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  readonly trustedProxies: TrustedProxies | undefined;
  /** Milliseconds without a byte of a stream after which a comment line is sent. */
  readonly keepAliveMs: number;
  readonly metadataForm: MetadataForm;
  /** Accepted peppers; the first hashes new secrets. */
  readonly peppers: readonly [Pepper, ...Pepper[]];
  /** Seals the customers' own credentials. */
  readonly encryptionKeys: readonly [EncryptionKey, ...EncryptionKey[]];
  /** Private hosts that base URLs may name. */
  readonly allowPrivateUpstreams: readonly Endpoint[];
  readonly authenticate: Authenticate;
  readonly authenticateToken: AuthenticateToken;
  readonly checkAddress: CheckAddress;
  readonly listModels: ListModels;
  /** Loads the MCP server with the first message: a gateway that serves no MCP keeps the memory. */
  readonly mcp: () => Promise<McpServer>;
  /** The authorization server of an origin; loaded with the first request for it. */
  readonly authorizationServer: (origin: string) => Promise<AuthorizationServer>;
  readonly analyst: Pick<Analyst, 'analyse' | 'analyseBy'>;
  readonly usageReporter: Pick<UsageReporter, 'report'>;
  readonly logReader: Pick<LogReader, 'read'>;
  /** Token with which `/metrics` can be read from other machines; undefined: it cannot. */
  readonly metricsToken: () => string | undefined;
}

/** The parts that the management listener uses, which makes no calls. */
export type ManagementContext = Pick<
  AppContext,
  | 'store'
  | 'clock'
  | 'telemetry'
  | 'catalog'
  | 'rates'
  | 'readiness'
  | 'policyStatus'
  | 'policy'
  | 'management'
  | 'bodyLimits'
  | 'trustedProxies'
  | 'keepAliveMs'
  | 'peppers'
  | 'encryptionKeys'
  | 'allowPrivateUpstreams'
  | 'analyst'
  | 'usageReporter'
  | 'logReader'
  | 'metricsToken'
>;

/** The parts that the pages of both listeners use. */
export type PagesContext = Pick<AppContext, 'store' | 'clock' | 'telemetry' | 'rates' | 'peppers' | 'bodyLimits'>;
