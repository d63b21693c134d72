import type { Feature } from '../feature.ts'
import { addonFeature } from './addon.ts'
import { discoveryFeature } from './bootstrap.ts'
import { issuerFeature } from './issuer.ts'
import { oidcFeature } from './oidc.ts'
import { tunnelFeature } from './tunnel.ts'
import { workloadFeature } from './workload.ts'

/** The features that live in the API server, in the order in which they are opened: the tunnel dials for the others. */
export const allFeatures: readonly Feature[] = [
  tunnelFeature,
  discoveryFeature,
  issuerFeature,
  oidcFeature,
  workloadFeature,
  addonFeature,
]
