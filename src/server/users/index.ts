export { createMachine, problemOfMachineName } from './create-machine.ts'
export { createUser } from './create-user.ts'
export { listOldCertificates, type OldCertificate } from './old-certificates.ts'
export { listUserRecords, type UserRecord } from './user-records.ts'
