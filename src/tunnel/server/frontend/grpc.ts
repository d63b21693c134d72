import { excerpt, type Logger, quotePeer } from '../../../core/index.ts'
import { DialFailed, type IncomingDial, type Link } from '../../link/index.ts'
import { NoAgentAvailable } from '../agent-registry.ts'
import type { TunnelHub } from '../hub.ts'
import type { ServerMetrics } from '../metrics.ts'

/** Why a dial came to nothing, in the words that go back to whoever asked for it. */
export function failureText(error: unknown): string {
  if (error instanceof NoAgentAvailable) return error.message
  return error instanceof DialFailed ? error.text : 'internal error'
}

/** The HTTP status of a dial that came to nothing; the words of agents are all there is to go by. */
export function failureStatus(error: unknown): 500 | 502 | 503 | 504 {
  if (!(error instanceof DialFailed)) return 500
  if (error.reason === 'timeout') return 504
  if (error.reason !== 'refused-by-peer') return 502
  if (/timeout|timed out|deadline/i.test(error.text)) return 504
  return /too many open files/i.test(error.text) ? 503 : 502
}

/** The body that goes with that status. */
export const failureBody = (error: unknown): string =>
  error instanceof NoAgentAvailable
    ? `currently no tunnels available: ${error.message}`
    : failureText(error)

/** What serves the streams of kube-apiserver. */
export interface GrpcFrontEndParts {
  readonly hub: TunnelHub
  readonly metrics: ServerMetrics
  readonly log: Logger
  /** A stream that is used for nothing is closed after this. */
  readonly unusedMs?: number
}

const defaultUnusedMs = 60_000

/** Serves one stream of a front end: dials go through agents, and the bytes with them. */
export function serveFrontEndLink(link: Link, parts: GrpcFrontEndParts): void {
  const { unusedMs = defaultUnusedMs, metrics, log } = parts
  let unused: NodeJS.Timeout | undefined
  const expectUse = (): void => {
    unused = setTimeout(() => link.close(), unusedMs)
  }
  link.start({
    dial: (dial) => {
      clearTimeout(unused)
      serveDial(dial, parts).then(
        (isCarried) => {
          if (!isCarried) expectUse()
        },
        (err: unknown) => log.error({ err }, 'serving a dial failed'),
      )
    },
    drain: () => {},
  })
  expectUse()
  void link.ended.then(({ error }) => {
    clearTimeout(unused)
    if (error) metrics.streamBroke('from_client')
  })
}

/** Answers a dial; false when it came to nothing. */
async function serveDial(dial: IncomingDial, parts: GrpcFrontEndParts): Promise<boolean> {
  const { hub, metrics, log } = parts
  const { address, protocol } = dial
  if (protocol !== 'tcp') {
    dial.refuse(`unsupported protocol ${quotePeer(protocol)}`)
    return false
  }
  try {
    const far = await hub.open(address, dial.signal)
    const near = dial.accept()
    if (!near) {
      metrics.dialFailed('send_rsp')
      far.close()
      return false
    }
    await hub.carry(near, far, { from: 'client', address })
    return true
  } catch (error) {
    if (!(error instanceof DialFailed || error instanceof NoAgentAvailable)) {
      log.error({ err: error, address: excerpt(address) }, 'dial failed unexpectedly')
    } else log.info({ address: excerpt(address), why: excerpt(failureText(error)) }, 'dial failed')
    dial.refuse(failureText(error))
    return false
  }
}
