import { excerpt, systemErrorCode } from '../../../core/index.ts'

/** What failed a dial, in the words that a Go program would use. */
export class TargetUnreachable extends Error {
  readonly isTimeout: boolean

  constructor(
    text: string,
    options: { readonly isTimeout?: boolean; readonly cause?: unknown } = {},
  ) {
    super(text, { cause: options.cause })
    this.name = 'TargetUnreachable'
    this.isTimeout = options.isTimeout ?? false
  }
}

/** Konnectivity's server chooses the HTTP status of an answer by these words. */
const inGoWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  ECONNRESET: 'connect: connection reset by peer',
  ENETUNREACH: 'connect: network is unreachable',
  EHOSTUNREACH: 'connect: no route to host',
  ETIMEDOUT: 'connect: connection timed out',
  EADDRNOTAVAIL: 'connect: cannot assign requested address',
  EADDRINUSE: 'connect: address already in use',
  EACCES: 'connect: permission denied',
  EPERM: 'connect: operation not permitted',
  EINVAL: 'connect: invalid argument',
  EMFILE: 'socket: too many open files',
  ENFILE: 'socket: too many open files in system',
  ENOBUFS: 'socket: no buffer space available',
}

const lookupWords: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no such host',
  ENODATA: 'no such host',
  EAI_AGAIN: 'Temporary failure in name resolution',
}

/** A connection to `address` was refused by the operating system. */
export function connectFailure(address: string, cause: unknown): TargetUnreachable {
  const code = systemErrorCode(cause) ?? 'unknown error'
  const text = inGoWords[code] ?? `connect: ${code}`
  return new TargetUnreachable(`dial tcp ${address}: ${text}`, { cause })
}

/** The name `host` has no address. */
export function lookupFailure(host: string, cause: unknown): TargetUnreachable {
  const code = systemErrorCode(cause) ?? 'unknown error'
  const text = lookupWords[code] ?? inGoWords[code]?.replace('connect: ', '') ?? code
  return new TargetUnreachable(`dial tcp: lookup ${host}: ${text}`, { cause })
}

/** Nobody answered at `address` in time. */
export const timeoutFailure = (address: string): TargetUnreachable =>
  new TargetUnreachable(`dial tcp ${address}: i/o timeout`, { isTimeout: true })

/** `address` is not of the form `host:port`. */
export const badAddress = (address: string): TargetUnreachable =>
  new TargetUnreachable(
    /:\d+$/.test(address)
      ? `dial tcp: address ${excerpt(address)}: invalid address`
      : `dial tcp: address ${excerpt(address)}: missing port in address`,
  )

/** A metadata service of a cloud platform is at `address`, or nothing is known of what is behind it. */
export const forbiddenAddress = (address: string): TargetUnreachable =>
  new TargetUnreachable(`dial tcp ${address}: connect: operation not permitted`)
