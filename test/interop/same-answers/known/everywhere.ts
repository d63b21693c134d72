import { type KnownDifference, shown } from './known-difference.ts'

/** What is to be seen in nearly every answer. */
export const everywhere: readonly KnownDifference[] = [
  {
    what: '`metadata.managedFields`',
    theirs: 'record which client set which field',
    ours: 'never there',
    why: 'only server-side apply reads them',
    matches: ({ at, ours, case: name }) =>
      (at.endsWith('metadata.managedFields') && ours === undefined) ||
      (name.endsWith(': managedFields emptied') && at === 'body.metadata.resourceVersion'),
  },
  {
    what: '`X-Kubernetes-Pf-*` headers',
    theirs: 'name the flow schema and the priority level of a request',
    ours: 'not sent',
    why: 'fairness is per user here and has no flow schemas',
    matches: ({ at }) => at.startsWith('headers.x-kubernetes-pf-'),
  },
  {
    what: '`X-Content-Type-Options: nosniff`',
    theirs: 'sent with some errors',
    ours: 'sent with every response',
    why: 'text that a client has sent may come back in a message, and no browser may take it for a page',
    matches: ({ at, ours }) =>
      at === 'headers.x-content-type-options' && shown(ours) === '["nosniff"]',
  },
]
