import type { Feature } from '../feature.ts'
import { addonFeature } from './addon-feature.ts'
import { discoveryFeature } from './discovery-feature.ts'
import { issuerFeature } from './issuer-feature.ts'
import { oidcFeature } from './oidc-feature.ts'
import { tunnelFeature } from './tunnel-feature.ts'
import { workloadFeature } from './workload-feature.ts'

/** The features that live in the API server, in the order in which they are opened: the tunnel dials for the others. */
export const allFeatures: readonly Feature[] = [
  tunnelFeature,
  discoveryFeature,
  issuerFeature,
  oidcFeature,
  workloadFeature,
  addonFeature,
]
