import { type ContestCase, credential, execUser, printing, standIns } from '../contest-case.ts'

/** Section 2.10: caching, expiry and 401. */
export const lifeCases: readonly ContestCase[] = [
  { name: 'four requests: no expiry', user: printing(credential({ token: 't' })), several: true },
  {
    name: 'four requests: valid for a quarter of an hour',
    user: execUser('presigned-token'),
    several: true,
  },
  {
    name: 'four requests: expired',
    user: printing(credential({ token: 't', expirationTimestamp: '2001-01-01T00:00:00Z' })),
    several: true,
  },
  { name: 'four requests: the plugin fails', user: execUser('fails-silently'), several: true },
  {
    name: 'refused: every credential',
    user: printing(credential({ token: 't' })),
    refuses: () => true,
  },
  {
    name: 'refused: the first credential',
    user: ({ directory }) =>
      execUser('', {}, { command: 'sh', args: ['-c', `${secondTime(directory)}`] }),
    refuses: (authorization) => authorization.endsWith('first'),
  },
  { name: 'refused: a token without a plugin', user: { token: 'static' }, refuses: () => true },
]

/** Says `first` at its first run for each client and `second` later, and keeps count as the stand-ins do. */
const secondTime = (directory: string): string =>
  `. ${standIns}record.sh; n=$(wc -l <"$RECORD"); cd ${directory}; ` +
  `[ "$n" -le 1 ] && answer '{"token":"first"}' || answer '{"token":"second"}'`
