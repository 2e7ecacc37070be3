// Marks the root of the module. The requirements of each Kubernetes minor are in go-1.NN.mod,
// which the build names with -modfile.
module realcluster
