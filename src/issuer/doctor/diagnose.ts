import type { IssuerInspection } from './inspect.ts'
import { type RelyingPartyName, requirementsOf } from './relying-parties.ts'

/** Whether one relying party accepts the tokens of an issuer. */
export interface Diagnosis {
  readonly relyingParty: RelyingPartyName
  readonly verdict: 'works' | 'warns' | 'fails'
  readonly findings: readonly Finding[]
}

/** A problem and its fix. */
interface Finding {
  readonly level: 'fails' | 'warns'
  readonly problem: string
  readonly todo: string
}

/** Whether each of these relying parties accepts the tokens of an issuer. */
export const diagnoseIssuer = (
  inspection: IssuerInspection,
  relyingParties: readonly RelyingPartyName[],
): Diagnosis[] =>
  relyingParties.map((relyingParty) => {
    const findings = requirementsOf(relyingParty).flatMap(({ level, problem, todo }): Finding[] => {
      const found = problem(inspection)
      return found === undefined ? [] : [{ level, problem: found, todo }]
    })
    const fails = findings.some(({ level }) => level === 'fails')
    const verdict = fails ? 'fails' : findings.length > 0 ? 'warns' : 'works'
    return { relyingParty, verdict, findings }
  })
