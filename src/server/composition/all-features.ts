import type { Feature } from '../feature.ts'
import { issuerFeature } from './issuer-feature.ts'

/** The features that live in the API server, in the order in which they are opened. */
export const allFeatures: readonly Feature[] = [issuerFeature]
