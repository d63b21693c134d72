import type { TokenCase } from './attempts.suite.ts'
import { claimCases } from './claim-cases.suite.ts'
import { clusterCases } from './cluster-cases.suite.ts'
import { signatureCases } from './signature-cases.suite.ts'

/** All cases, for whatever judges tokens. */
export const tokenCases: readonly TokenCase[] = [...signatureCases, ...claimCases, ...clusterCases]
