import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Secret } from '../core/index.ts'

/** A client certificate with its key. */
export interface ClientCertificate {
  /** The chain, leaf first. */
  readonly certPem: string
  readonly keyPem: Secret
}

/** What proves to a cluster who one is, until it expires. A new object stands for a new credential. */
export interface Credential {
  readonly token?: Secret
  readonly basic?: { readonly username: string; readonly password: Secret }
  readonly clientCertificate?: ClientCertificate
  /** Milliseconds since 1970; absent if it does not expire. */
  readonly expiresAt?: number
}

/** An answer of the server that says a credential is not accepted (any more). */
export interface Refusal {
  readonly status: number
  /** Names in lower case, all values. */
  readonly headers: Readonly<Record<string, readonly string[]>>
}

/** Hands out the current credential and replaces it in time. */
export interface CredentialSource {
  /**
   * The credential to use now; waits while a new one is being fetched. The signal releases this caller only,
   * a fetch that others share goes on. Rejects with a CredentialError when there is none to be had.
   */
  current(signal?: AbortSignal): Promise<Credential>
  /**
   * The server refused `used`. Resolves with the credential to try instead, or with undefined when there is none:
   * nothing newer can be had, or the source has tried often enough for now.
   */
  renew(used: Credential, refusal: Refusal, signal?: AbortSignal): Promise<Credential | undefined>
  /** Called after each replacement; returns how to stop listening. */
  onRotate(listener: (next: Credential, previous: Credential) => void): () => void
  /** Stops timers and drops what is cached; the source cannot be used afterwards. */
  dispose(): void
}

/**
 * Whether a token can be sent: beyond ASCII clients do not agree on the bytes, and spaces are none of a
 * token (RFC 6750 §2.1).
 */
export const isSendableToken = (token: string): boolean => /^[\x21-\x7e]+$/.test(token)

/** One request to a cluster's API server. */
export interface ClusterRequest {
  readonly method: string
  /** Path and query below the server's address, beginning with a slash. */
  readonly path: string
  /** Names in lower case; a list stands for several headers of that name. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: Buffer
  /** Set if an application behind the server may answer, whose 401 says nothing about our credential. */
  readonly relayed?: boolean
  /** Ends the request, and the body of its answer if that has begun. */
  readonly signal: AbortSignal
}

/** An answer whose head has arrived. */
export interface ClusterResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** To be read to its end or destroyed. */
  readonly body: Readable
}

/** Carries one request to a cluster. */
export type RequestFn = (request: ClusterRequest) => Promise<ClusterResponse>
