import { parentPort } from 'node:worker_threads'
import { maxWork } from '../content/index.ts'
import { answerBodyJob, type BodyJob } from './body-jobs.ts'

// The entry of a worker thread: decodes and patches what would hold up the event loop.
parentPort?.on('message', (job: BodyJob) => {
  void answerBodyJob(job, maxWork()).then((answer) => parentPort?.postMessage(answer))
})
