import { WrongUsage } from '../../core/index.ts'
import { problemsOfOutput } from './check-output.ts'
import { defaultOutput, type IdentityOutput } from './identity-output.ts'
import type { TrustOptions } from './open-verifier.ts'

/** Options as an application may have written them. */
interface Unchecked extends TrustOptions {
  readonly audiences?: unknown
  readonly output?: IdentityOutput
  readonly developmentUser?: string
  readonly maxTunnelMs?: unknown
}

const serviceName = /^[a-z\d-]+\/[a-z\d-]+$/

/** Refuses, in words, what would let nobody in: an application in plain JavaScript has no types to tell. */
export function checkMiddleware(options: Unchecked): void {
  const problem = problemOf(options)
  if (problem !== undefined) throw new WrongUsage(`createGuard: ${problem}`)
}

function problemOf(options: Unchecked = {}): string | undefined {
  const { developmentUser, maxTunnelMs = 1, x5c, handshake, jwks, output = defaultOutput } = options
  if (!areAudiences(options.audiences))
    return "audiences must list the Services of this application, such as ['kube-system/dashboard']"
  if (developmentUser === '') return 'developmentUser must be a name'
  if (x5c === false && !handshake && !jwks && developmentUser === undefined)
    return 'x5c is switched off and neither handshake nor jwks is there: nobody would be believed'
  if (!isDuration(maxTunnelMs)) return 'maxTunnelMs must be a number of milliseconds'
  const [unfit] = problemsOfOutput(output)
  return unfit === undefined ? undefined : `output: ${unfit}`
}

const isDuration = (ms: unknown): boolean => Number.isSafeInteger(ms) && Number(ms) > 0

function areAudiences(audiences: unknown): boolean {
  if (!Array.isArray(audiences))
    return typeof audiences === 'object' && audiences !== null && 'has' in audiences
  const isService = (name: unknown): boolean => typeof name === 'string' && serviceName.test(name)
  return audiences.length > 0 && audiences.every(isService)
}
