import {
  type Controller,
  type Extension,
  type ExtraResource,
  type ExtraSubresource,
  type IssueToken,
  kindDefinitions,
  type RequestBodies,
  type ResourceHandler,
} from '../api/index.ts'
import type { Revocations, StructuredToken, TokenAuthenticator } from '../authn/index.ts'
import type {
  Admission,
  Authentication,
  AuthenticationRequest,
  Authorizer,
  Clock,
  ClusterView,
  Dialer,
  Logger,
  MetricsRegistry,
  SealedValues,
} from '../core/index.ts'
import type { Pki, ServingMaterial } from '../pki/index.ts'
import type { DataDirectory } from './data-directory/index.ts'
import { directDialer } from './direct-dialer.ts'
import type { ServerOptions } from './options/options.ts'
import type { UpgradeHandler } from './pipeline/types.ts'
import type { PathRoute } from './routes/route.ts'
import type { VersionInfo } from './routes/routes.ts'

/** What a feature builds on: the cluster is open, the port is not. */
export interface FeatureContext {
  readonly options: ServerOptions
  /** What `/version` says. */
  readonly version: VersionInfo
  readonly directory: DataDirectory
  readonly pki: Pki
  /** Keys that the server keeps for itself and its replicas. */
  readonly sealed: SealedValues
  readonly view: ClusterView
  readonly authorizer: Authorizer
  /** Who is revoked, for ports that a feature opens itself; the API's own are looked after. */
  readonly revocations: Pick<Revocations, 'isRevoked' | 'onRevoked'>
  readonly metrics: MetricsRegistry
  readonly clock: Clock
  readonly log: Logger
  /** Opens connections to Pods, Services and nodes, as `--egress` says. */
  readonly dialer: Dialer
  /** The certificate that the port shows; known once the port is open. */
  readonly serving: () => ServingMaterial
  /** Reads and decodes the bodies of requests, within the server's limits. */
  readonly bodies: RequestBodies
  /** For whom credentials are that do not say it; known once the port is open. */
  readonly apiAudiences: () => readonly string[]
  /** Who a request comes from, asked anew while a stream lives on; a credential that is refused or revoked is a 401. */
  readonly authenticate: (
    request: AuthenticationRequest,
    signal: AbortSignal,
  ) => Promise<Authentication | undefined>
  /** The token of the token file that has this id, once that file is read. */
  readonly fileToken: (id: string) => StructuredToken | undefined
  /** Where the outside reaches the server; known once the port is open. */
  readonly location: () => ServerLocation
  /** Aborts when the server ends. */
  readonly signal: AbortSignal
  /** What is to be closed at the end, the last one first. */
  readonly onClose: (name: string, close: (deadline: AbortSignal) => void | Promise<void>) => void
}

/** Where a server is reached. */
export interface ServerLocation {
  /** Name or address. */
  readonly host: string
  readonly port: number
  readonly url: string
}

/** What a feature adds to the server. */
export interface FeatureParts {
  /** Kinds of bearer tokens, asked after the token file. */
  readonly tokens?: readonly TokenAuthenticator[]
  readonly routes?: readonly PathRoute[]
  readonly subresources?: readonly FeatureSubresource[]
  readonly resources?: readonly FeatureResource[]
  readonly admissions?: readonly Admission[]
  /** Makes the tokens that TokenRequest asks for, also within the server. */
  readonly issueToken?: IssueToken
  /** For whom credentials of the API server are, once the port is open. */
  readonly apiAudiences?: () => readonly string[]
  /** Exact paths that requests without a credential may ask for; RBAC still decides. */
  readonly anonymousPaths?: readonly string[]
  /** Dials for the features that are opened after this one. */
  readonly dialer?: Dialer
  /** What else listens where, by purpose, once the port is open. */
  readonly places?: () => Readonly<Record<string, string>>
  /** Called once the port is open, before the server says that it is ready. */
  readonly onListening?: () => Promise<void>
  /** Run while the server serves. */
  readonly controllers?: readonly Controller[]
}

/** A resource that a feature answers for, as API discovery shows it. */
interface FeatureResource {
  readonly entry: ExtraResource
  readonly handle: ResourceHandler
}

/** A subresource with its handler, as API discovery shows it. */
export interface FeatureSubresource {
  readonly entry: ExtraSubresource
  readonly handle: ResourceHandler
  /** Answers requests to leave HTTP; without one they are refused. */
  readonly upgrade?: UpgradeHandler
}

/** A part of the product that lives in the API server; opened in the order of one list. */
export type Feature = (context: FeatureContext) => Promise<FeatureParts>

/** A resource or subresource of a feature as the resource API checks and calls it. */
export interface FeatureExtension extends Extension {
  readonly upgrade?: UpgradeHandler | undefined
}

/** What all features together add to the server. */
export interface OpenFeatures
  extends Required<
    Omit<FeatureParts, 'subresources' | 'resources' | 'issueToken' | 'onListening' | 'dialer'>
  > {
  /** By `group/version/resource/subresource`. */
  readonly extensions: ReadonlyMap<string, FeatureExtension>
  readonly extras: readonly ExtraSubresource[]
  readonly live: readonly ExtraResource[]
  readonly issueToken?: IssueToken | undefined
  /** Tells all features that the port is open. */
  listening(): Promise<void>
}

/** Opens the features one after another. */
export async function openFeatures(
  features: readonly Feature[],
  context: Omit<FeatureContext, 'dialer' | 'apiAudiences'>,
): Promise<OpenFeatures> {
  const opened: FeatureParts[] = []
  let dialer = directDialer()
  const apiAudiences = () => opened.flatMap((parts) => parts.apiAudiences?.() ?? [])
  for (const feature of features) {
    const parts = await feature({ ...context, dialer, apiAudiences })
    dialer = parts.dialer ?? dialer
    opened.push(parts)
  }
  const subresources = opened.flatMap((parts) => parts.subresources ?? [])
  const resources = opened.flatMap((parts) => parts.resources ?? [])
  return {
    tokens: opened.flatMap((parts) => parts.tokens ?? []),
    routes: opened.flatMap((parts) => parts.routes ?? []),
    admissions: opened.flatMap((parts) => parts.admissions ?? []),
    controllers: opened.flatMap((parts) => parts.controllers ?? []),
    anonymousPaths: opened.flatMap((parts) => parts.anonymousPaths ?? []),
    apiAudiences,
    issueToken: opened.find((parts) => parts.issueToken)?.issueToken,
    places: () => Object.assign({}, ...opened.map((parts) => parts.places?.())),
    listening: async () => {
      for (const parts of opened) await parts.onListening?.()
    },
    extensions: new Map([
      ...subresources.map((each) => [pathOf(each.entry), extensionOf(each)] as const),
      ...resources.map(({ entry: { verbs, namespaced, ...entry }, handle }) => {
        const extension: FeatureExtension = { verbs, namespaced, handle }
        return [pathOf({ ...entry, name: '' }), extension] as const
      }),
    ]),
    extras: subresources.map(({ entry }) => entry),
    live: resources.map(({ entry }) => entry),
  }
}

/** A subresource is in the scope of its parent, which is a stored kind. */
function extensionOf({ entry, handle, upgrade }: FeatureSubresource): FeatureExtension {
  const parent = kindDefinitions.find(
    ({ kind }) =>
      kind.group === entry.group &&
      kind.version === entry.version &&
      kind.resource === entry.resource,
  )
  if (!parent) throw new Error(`no kind has the resource ${pathOf(entry)}`)
  return { verbs: entry.verbs, namespaced: parent.kind.namespaced, handle, upgrade }
}

const pathOf = ({
  group,
  version,
  resource,
  name,
}: Pick<ExtraSubresource, 'group' | 'version' | 'resource' | 'name'>): string =>
  `${group}/${version}/${resource}/${name}`
