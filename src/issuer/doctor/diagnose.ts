import type { IssuerSight } from './inspect.ts'
import { demandsOn, type RelyingPartyName } from './relying-parties.ts'

/** What one relying party will make of an issuer. */
export interface Diagnosis {
  readonly relyingParty: RelyingPartyName
  readonly verdict: 'works' | 'warns' | 'fails'
  readonly findings: readonly Finding[]
}

/** Something that is wrong, and what to do about it. */
interface Finding {
  readonly level: 'fails' | 'warns'
  readonly problem: string
  readonly todo: string
}

/** What each of these relying parties will make of an issuer. */
export const diagnoseIssuer = (
  sight: IssuerSight,
  relyingParties: readonly RelyingPartyName[],
): Diagnosis[] =>
  relyingParties.map((relyingParty) => {
    const findings = demandsOn(relyingParty).flatMap(({ level, problem, todo }): Finding[] => {
      const found = problem(sight)
      return found === undefined ? [] : [{ level, problem: found, todo }]
    })
    const fails = findings.some(({ level }) => level === 'fails')
    const verdict = fails ? 'fails' : findings.length > 0 ? 'warns' : 'works'
    return { relyingParty, verdict, findings }
  })
