import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import {
  anonymous,
  type BearerTokens,
  bearerTokens,
  type ClientCertificateVerifier,
  clientCertificate,
  defaultAnonymousPaths,
  firstOf,
  forApiAudiences,
  openTokenFile,
  rememberVerified,
  requestHeader,
  type StructuredToken,
  type TokenAuthenticator,
  type TokenFile,
  type VerifiedClientCertificate,
} from '../../authn/index.ts'
import {
  type AuthenticationRequest,
  type Authenticator,
  type Clock,
  CommandFailed,
  type Logger,
  readGivenFile,
} from '../../core/index.ts'
import {
  CertificateRefused,
  peerCertificates,
  verifyClientCertificate,
  watchFiles,
} from '../../pki/index.ts'
import type { ServerOptions } from '../options/options.ts'
import { openTrustBundle, type TrustBundle } from '../trust-bundle.ts'

interface Http2Request {
  readonly stream?: { readonly session?: { readonly socket: Socket } }
}

/** The connection that a request came by; each HTTP/2 request has a stand-in of its own. */
const connectionOf = (request: Pick<IncomingMessage, 'socket'>): Socket =>
  (request as Http2Request).stream?.session?.socket ?? request.socket

/** Cuts streams whose client certificate is no longer vouched for, because its CA has been dropped. */
function distrustedStreams(
  bundles: readonly TrustBundle[],
  clock: Clock,
): (request: IncomingMessage, cut: () => void) => () => void {
  const streams = new Map<symbol, { readonly socket: Socket; readonly cut: () => void }>()
  const isVouchedFor = (socket: Socket): boolean => {
    const chain = peerCertificates(socket)
    return chain.length === 0 || bundles.some((bundle) => vouches(bundle, chain, clock))
  }
  const look = (): void => {
    for (const { socket, cut } of streams.values()) if (!isVouchedFor(socket)) cut()
  }
  for (const bundle of bundles) bundle.onNew(look)
  return (request, cut) => {
    const id = Symbol('stream')
    streams.set(id, { socket: connectionOf(request), cut })
    return () => void streams.delete(id)
  }
}

function vouches(
  { certificates }: TrustBundle,
  chain: ReturnType<typeof peerCertificates>,
  clock: Clock,
): boolean {
  try {
    verifyClientCertificate(chain, certificates, clock.now())
    return true
  } catch (error) {
    if (error instanceof CertificateRefused) return false
    throw error
  }
}

/** What the list of authenticators is made from. */
export interface IdentityParts {
  readonly options: ServerOptions
  readonly clientCa: TrustBundle
  /** Told of each use of a client certificate. */
  readonly onCertificate?: (certificate: VerifiedClientCertificate, socket: Socket) => void
  /** Token kinds of the features, asked after the token file. */
  readonly tokens: readonly TokenAuthenticator[]
  /** For whom tokens are that do not say it. */
  readonly apiAudiences: () => readonly string[]
  /** Paths of the features that are open to requests without a credential. */
  readonly anonymousPaths: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Who a request comes from, and who a token belongs to. */
export interface Identity {
  readonly authenticator: Authenticator
  readonly bearer: BearerTokens
  /** The token of the token file that has this id. */
  fileToken(id: string): StructuredToken | undefined
  /** Cuts a stream when its client certificate is no longer vouched for; returns how to let it go. */
  onDistrusted(request: IncomingMessage, cut: () => void): () => void
  /** Roots whose client certificates the TLS handshake asks for. */
  clientRootsPem(): string
  /** Calls back when those roots have changed. */
  onNewRoots(listener: () => void): void
}

function verifierFor(
  bundle: TrustBundle,
  clock: Clock,
  onUse: IdentityParts['onCertificate'] = () => {},
): ClientCertificateVerifier {
  const remembered = rememberVerified((socket: Socket) => {
    const chain = peerCertificates(socket)
    if (chain.length === 0) return undefined
    return verifyClientCertificate(chain, bundle.certificates, clock.now())
  }, clock)
  // Connections that were verified under the old roots must be verified under the new ones.
  bundle.onNew(() => remembered.forget())
  return (socket) => {
    const certificate = remembered.verify(socket)
    if (certificate) onUse(certificate, socket)
    return certificate
  }
}

/**
 * Gives authenticators the socket of the connection. Each HTTP/2 request has a stand-in of its own,
 * by which a connection that was verified before would not be known again.
 */
function perConnection(inner: Authenticator): Authenticator {
  return {
    name: inner.name,
    authenticate(request, signal) {
      const socket = connectionOf(request)
      if (socket === request.socket) return inner.authenticate(request, signal)
      const { method, url, headers, rawHeaders } = request
      const connected: AuthenticationRequest = { method, url, headers, rawHeaders, socket }
      return inner.authenticate(connected, signal)
    },
  }
}

async function readTokenFile(path: string): Promise<string> {
  return readGivenFile(
    path,
    (why, cause) =>
      new CommandFailed('TOKEN_FILE_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
  )
}

async function tokenFileOf(parts: IdentityParts): Promise<TokenFile | undefined> {
  const { options, log, signal } = parts
  const path = options.tokenAuthFile
  if (path === undefined) return undefined
  return openTokenFile({
    path,
    read: () => readTokenFile(path),
    watch: (onChange) => {
      const closed = new AbortController()
      const until = AbortSignal.any([signal, closed.signal])
      watchFiles([path], onChange, { log, signal: until }).catch((err: unknown) =>
        log.warn({ err, path }, 'cannot follow the token file'),
      )
      return () => closed.abort()
    },
    log,
  })
}

async function frontProxyOf(
  parts: IdentityParts,
): Promise<{ readonly authenticators: Authenticator[]; readonly roots: TrustBundle[] }> {
  const { options, clock } = parts
  const path = options.requestheaderClientCaFile
  if (path === undefined) return { authenticators: [], roots: [] }
  const bundle = await openTrustBundle(path, parts)
  const authenticator = requestHeader({
    verify: verifierFor(bundle, clock),
    allowedNames: options.requestheaderAllowedNames,
    headers: {
      username: options.requestheaderUsernameHeaders,
      uid: options.requestheaderUidHeaders,
      group: options.requestheaderGroupHeaders,
      extraPrefix: options.requestheaderExtraHeadersPrefix,
    },
  })
  return { authenticators: [authenticator], roots: [bundle] }
}

/** The one ordered list of authenticators. */
export async function openIdentity(parts: IdentityParts): Promise<Identity> {
  const { options, clock, clientCa } = parts
  const openPaths = [...defaultAnonymousPaths, ...parts.anonymousPaths]
  const frontProxy = await frontProxyOf(parts)
  const file = await tokenFileOf(parts)
  const fromFile = file ? [forApiAudiences(file, parts.apiAudiences)] : []
  const bearer = bearerTokens([...fromFile, ...parts.tokens])
  const bundles = [clientCa, ...frontProxy.roots]
  const chain = firstOf([
    ...frontProxy.authenticators,
    clientCertificate(verifierFor(clientCa, clock, parts.onCertificate)),
    bearer,
    ...(options.anonymousAuth ? [anonymous({ paths: openPaths })] : []),
  ])
  return {
    authenticator: perConnection(chain),
    bearer,
    fileToken: (id) => file?.findStructured(id),
    onDistrusted: distrustedStreams(bundles, clock),
    clientRootsPem: () => bundles.map(({ pem }) => pem).join('\n'),
    onNewRoots: (listener) => {
      for (const bundle of bundles) bundle.onNew(listener)
    },
  }
}
