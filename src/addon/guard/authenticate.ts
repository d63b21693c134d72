import type { Logger } from '../../core/index.ts'
import type { AddonUser } from '../token/addon-claims.ts'
import { AddonTokenRefused } from '../token/token-refused.ts'
import type { AddonTokenVerifier } from '../token/verifier.ts'
import type { AudienceList } from './audiences.ts'
import { type GuardRefused, unproven } from './refusal.ts'

/** By what a request proves its user. */
export interface Proof {
  readonly verifier: Pick<AddonTokenVerifier, 'verify'>
  readonly audiences: AudienceList
  readonly log: Logger
}

const noToken =
  'there is no token: come through the API server, with ?add-auth=true or an annotation of the Service'
const bearer = /^bearer ([\w.-]+)$/i

/** The user behind an Authorization header, at once if it was here just now; throws GuardRefused for anything that proves nobody. */
export function authenticate(
  authorization: string | undefined,
  { verifier, audiences, log }: Proof,
): AddonUser | Promise<AddonUser> {
  if (authorization === undefined) throw unproven('no-token', noToken)
  const [, token] = bearer.exec(authorization) ?? []
  if (token === undefined) throw unproven('malformed', 'the Authorization header holds no token')
  const problem = audiences.problem
  if (problem !== undefined) throw unproven(problem, 'it is not known which Services this Pod has')
  try {
    const found = verifier.verify(token, audiences)
    if (!(found instanceof Promise)) return found
    return found.catch((error: unknown) => {
      throw toRefusal(error, log)
    })
  } catch (error) {
    throw toRefusal(error, log)
  }
}

/** A check that cannot be made is a refusal too. */
function toRefusal(err: unknown, log: Logger): GuardRefused {
  if (err instanceof AddonTokenRefused) return unproven(err.code, err.message)
  log.error({ err }, 'a token could not be checked')
  return unproven('check-failed', 'the token could not be checked')
}
