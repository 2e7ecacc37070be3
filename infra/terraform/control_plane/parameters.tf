# Made by `make terraform` from tools/release/options.py.
locals {
  parameters = {
    AlarmTopic       = var.alarm_topic
    Concurrency      = var.concurrency
    Tracing          = var.tracing
    LogRetentionDays = var.log_retention_days
  }
}

variable "alarm_topic" {
  description = "ARN of an SNS topic that alarms are sent to"
  type        = string
  default     = ""
}

variable "concurrency" {
  description = "whether functions reserve their concurrency"
  type        = string
  default     = "reserved"

  validation {
    condition     = contains(["reserved", "shared"], var.concurrency)
    error_message = "concurrency: give one of reserved, shared."
  }
}

variable "tracing" {
  description = "whether X-Ray follows an event from function to function"
  type        = string
  default     = "off"

  validation {
    condition     = contains(["off", "on"], var.tracing)
    error_message = "tracing: give one of off, on."
  }
}

variable "log_retention_days" {
  description = "days the functions' logs are kept"
  type        = string
  default     = "30"

  validation {
    condition     = contains(["1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "1827"], var.log_retention_days)
    error_message = "log_retention_days: give one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 1827."
  }
}
