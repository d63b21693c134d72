import type { IssuerSight } from './inspect-issuer.ts'

/** Something that a relying party demands or wishes of an issuer. */
export interface Demand {
  /** `fails`: it will not work there. `warns`: it may not, or not for long. */
  readonly level: 'fails' | 'warns'
  /** What is wrong, in words; undefined when all is well. */
  readonly problem: (sight: IssuerSight) => string | undefined
  readonly todo: string
}

/** Makes a demand without which it does not work. */
export const must = (problem: Demand['problem'], todo: string): Demand => ({
  level: 'fails',
  problem,
  todo,
})

/** Makes a demand that is a matter of care. */
export const should = (problem: Demand['problem'], todo: string): Demand => ({
  level: 'warns',
  problem,
  todo,
})
