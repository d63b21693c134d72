import { connect, type Socket } from 'node:net'
import { SallyportError, systemErrorCode } from '../../../core/index.ts'

/** A connection to a target that could not be made; the message goes to whoever asked for it. */
export class TargetUnreachable extends SallyportError {
  readonly code = 'TUNNEL_TARGET_UNREACHABLE'
}

const noAnswer = 'no answer in time'

const inWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  EMFILE: 'too many open files',
  ETIMEDOUT: noAnswer,
}

/** How a connection is opened. */
export interface ConnectTcpOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Whether our direction stays open when the other one ends; it does unless told. */
  readonly allowHalfOpen?: boolean
}

/** Opens a TCP connection within `timeoutMs`; rejects with TargetUnreachable. */
export function connectTcp(
  target: { readonly host: string; readonly port: number },
  options: ConnectTcpOptions,
): Promise<Socket> {
  const { timeoutMs, signal, allowHalfOpen = true } = options
  return new Promise((resolve, reject) => {
    const socket = connect({ ...target, allowHalfOpen, noDelay: true })
    const settle = (error?: Error): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
      socket.removeAllListeners('connect').removeAllListeners('error')
      if (!error) {
        socket.setKeepAlive(true, 30_000)
        resolve(socket)
        return
      }
      socket.on('error', () => {})
      socket.destroy()
      reject(error)
    }
    const giveUp = (): void => settle(new TargetUnreachable('the dial was given up'))
    const timer = setTimeout(() => settle(new TargetUnreachable(noAnswer)), timeoutMs)
    socket.once('connect', () => settle())
    socket.once('error', (cause) => settle(new TargetUnreachable(wordsFor(cause), { cause })))
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  })
}

function wordsFor(error: Error): string {
  const code = systemErrorCode(error) ?? ''
  return inWords[code] ?? (code || 'cannot connect')
}
