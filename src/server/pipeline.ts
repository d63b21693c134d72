import type { PipelineParts, Step } from './pipeline-parts.ts'
import { PipelineRunner } from './pipeline-runner.ts'
import { accept } from './steps/accept.ts'
import { admit } from './steps/admit.ts'
import { authenticate } from './steps/authenticate.ts'
import { authorize } from './steps/authorize.ts'
import { beginAudit } from './steps/begin-audit.ts'
import { bindToCredential } from './steps/bind-to-credential.ts'
import { checkHeaders } from './steps/check-headers.ts'
import { checkLimits } from './steps/check-limits.ts'
import { impersonate } from './steps/impersonate.ts'
import { readRequestInfo } from './steps/read-request-info.ts'
import { route } from './steps/route.ts'
import { signAnswer } from './steps/sign-answer.ts'
import { startDeadline } from './steps/start-deadline.ts'

/**
 * What happens to a request, in this order. A step that throws ends it with a Status; the audit
 * ends, and the place among the requests in flight is given back, when the connection is done.
 */
const steps: readonly Step[] = [
  accept, //           audit id and standard headers
  checkLimits, //      URL and header sizes                      414, 431
  checkHeaders, //     no header that says two things            400
  readRequestInfo, //  what it means; the only parse of the URL  400
  beginAudit, //       from here on the stages are recorded
  startDeadline, //    all but streams are over by then          504
  authenticate, //     who is it, and not revoked                401
  signAnswer, //       whoever asked by a signed request gets a signed answer
  impersonate, //      acting as somebody else                   403
  bindToCredential, // a stream ends when its credential does
  admit, //            in-flight limits per user and in total    429
  authorize, //        scope of the credential, then rights      403
  route, //            resources, plain paths, upgrades          404, 405 and the answer
]

/** Puts the steps together with the policy that they apply. */
export const createPipeline = (parts: PipelineParts): PipelineRunner =>
  new PipelineRunner(steps, parts)
