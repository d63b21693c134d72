export { type LeaseAnswer, leaseAnswer, leasesAnswered } from './lease-answer.ts'
export { isValidLease } from './lease-validity.ts'
