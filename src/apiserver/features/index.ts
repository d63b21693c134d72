import type { Feature } from '../feature.ts'
import { addonFeature } from './addon.ts'
import { bootstrapFeature } from './bootstrap.ts'
import { issuerFeature } from './issuer.ts'
import { oidcFeature } from './oidc.ts'
import { tunnelFeature } from './tunnel.ts'
import { workloadFeature } from './workload.ts'

/** The features of the API server, in the order in which they are opened and started: the tunnel dials for the others. */
export const allFeatures: readonly Feature[] = [
  tunnelFeature,
  bootstrapFeature,
  issuerFeature,
  oidcFeature,
  workloadFeature,
  addonFeature,
]
