# A cluster of terraform-aws-modules/eks, and Dovetail beside it.
variable "region" {
  type    = string
  default = "eu-west-1"
}

variable "subnet_ids" {
  type = list(string)
}

variable "vpc_id" {
  type = string
}

variable "bucket" {
  description = "a bucket of yours in the Region"
  type        = string
}

variable "forwarder_image" {
  type = string
}

provider "aws" {
  region = var.region
}

module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 21.0"

  name               = "prod"
  kubernetes_version = "1.36"
  vpc_id             = var.vpc_id
  subnet_ids         = var.subnet_ids
  # Dovetail's access entries need it: API, or API_AND_CONFIG_MAP.
  authentication_mode = "API"

  addons = {
    coredns                = {}
    eks-pod-identity-agent = { before_compute = true }
    kube-proxy             = {}
    vpc-cni                = { before_compute = true }
  }

  # Where the forwarder and coredns run.
  eks_managed_node_groups = {
    system = { instance_types = ["t4g.medium"], ami_type = "AL2023_ARM_64_STANDARD", desired_size = 2 }
  }
}

module "dovetail" {
  source = "../../control_plane"

  bucket   = var.bucket
  region   = var.region
  settings = { max_node_vcpus = "64" }
}

module "dovetail_prod" {
  source     = "../../cluster"
  depends_on = [module.dovetail]

  bucket             = var.bucket
  region             = var.region
  cluster            = module.eks.cluster_name
  forwarder_image    = var.forwarder_image
  max_price_per_hour = "25"
}
