import { algorithmCases } from './algorithm-cases.suite.ts'
import type { TokenCase } from './attempts.suite.ts'
import { claimCases } from './claim-cases.suite.ts'
import { clusterCases } from './cluster-cases.suite.ts'
import { formCases } from './form-cases.suite.ts'
import { keyCases } from './key-cases.suite.ts'
import { signatureCases } from './signature-cases.suite.ts'

/** All cases, for whatever judges tokens. */
export const tokenCases: readonly TokenCase[] = [
  ...algorithmCases,
  ...keyCases,
  ...signatureCases,
  ...formCases,
  ...claimCases,
  ...clusterCases,
]
