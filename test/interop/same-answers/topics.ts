import type { Topic } from './ask.ts'
import { brokenBodies } from './cases/bodies.ts'
import { changing } from './cases/changing.ts'
import { creating } from './cases/creating.ts'
import { deleting } from './cases/deleting.ts'
import { fieldValidation } from './cases/field-validation.ts'
import { forms } from './cases/forms.ts'
import { lifeOfKinds } from './cases/life-of-kinds.ts'
import { listing } from './cases/listing.ts'
import { patching } from './cases/patching.ts'
import { paths } from './cases/paths.ts'
import { protobuf } from './cases/protobuf.ts'
import { recorded } from './cases/recorded.ts'
import { reviews } from './cases/reviews.ts'
import { rights } from './cases/rights.ts'
import { selecting } from './cases/selecting.ts'
import { subresources } from './cases/subresources.ts'
import { watching } from './cases/watching.ts'

/** The whole battery. */
export const topics: readonly Topic[] = [
  lifeOfKinds,
  creating,
  changing,
  patching,
  deleting,
  brokenBodies,
  fieldValidation,
  protobuf,
  recorded,
  selecting,
  listing,
  watching,
  forms,
  subresources,
  paths,
  reviews,
  rights,
]
